// attack.tsv: how the smoothed classifier answers adversarial examples. One row per image and
// epsilon.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/smoothing/certify.h"

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

}  // namespace fedsmooth
