// Accuracy under attack: what certified accuracy cannot exceed, but for its alpha.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/records/attacks.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {

/// Share of images that withstood every attack of at most epsilon, for each epsilon that occurs, in
/// rising order: what certified accuracy cannot exceed, but for its alpha.
std::vector<CurvePoint> attacked_accuracy(const std::vector<AttackRow>& rows);

/// What the curve says about radius r: its point at the largest epsilon up to r, if there is one.
std::optional<double> attacked_at(const std::vector<CurvePoint>& curve, double r);

struct Contradictions {
  int64_t images = 0;  // that both tables have
  int64_t broken = 0;  // of these, misled by less than the radius at which they are certified
};
Contradictions find_contradictions(const std::vector<CertificateRow>& certificates,
                                   const std::vector<AttackRow>& attacks);

}  // namespace fedsmooth
