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
  double epsilon = 0.0;       // l2 bound of the attack; 0: the clean image
  int64_t predict = 0;        // class with the most votes; kAbstain if no copy voted for a class
  double perturbation = 0.0;  // |x_adv - x|, l2

  bool correct() const { return predict == label; }
};

/// Returns the header line, with its line end.
std::string attack_header();
/// Returns a row as a line, with its line end.
std::string format_attack(const AttackRow& row);

/// Parses a whole file; `name` is its name in messages. A last line without its end is left out.
/// Throws an Error that names the line if anything else is wrong.
std::vector<AttackRow> parse_attacks(std::string_view text, const std::string& name);
/// Reads and parses a file. Also throws an Error if its rows do not have the SHA-256 that the JSON
/// beside it states.
std::vector<AttackRow> read_attacks(const std::filesystem::path& path);

}  // namespace fedsmooth
