// attack.tsv: how the smoothed classifier answers adversarial examples. One row per image and
// epsilon.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/report/summary.h"

namespace fedsmooth {

struct AttackRow {
  int64_t index = 0;
  int64_t label = 0;
  double epsilon = 0.0;       // 0: the image itself
  int64_t predict = 0;        // majority of the votes; kAbstain if none was for any class
  double perturbation = 0.0;  // |x_adv - x|

  bool correct() const { return predict == label; }
};

std::string attack_header();
std::string format_attack(const AttackRow& row);

/// See tsv.h.
std::vector<AttackRow> parse_attacks(std::string_view text, const std::string& name);
std::vector<AttackRow> read_attacks(const std::filesystem::path& path);

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
