// Accuracy under attack: an upper bound of certified accuracy, up to the failures that alpha
// allows.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/records/attacks.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {

/// Returns the share of images that withstood every attack of at most epsilon, for each epsilon
/// that occurs, in ascending order.
std::vector<CurvePoint> attacked_accuracy(const std::vector<AttackRow>& rows);

/// Returns the accuracy at the largest epsilon of the curve that is at most r; nothing if there is
/// none.
std::optional<double> attacked_at(const std::vector<CurvePoint>& curve, double r);

struct Contradictions {
  int64_t images = 0;  // number of images that both tables have
  int64_t broken = 0;  // of these, misled by a perturbation shorter than their certified radius
};
Contradictions find_contradictions(const std::vector<CertificateRow>& certificates,
                                   const std::vector<AttackRow>& attacks);

}  // namespace fedsmooth
