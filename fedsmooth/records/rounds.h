// rounds.tsv: one row per training round. If a client diverged, the round's loss and telemetry may
// not be finite; such a cell is empty in the file and NaN here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct RoundRow {
  int64_t round = 0;                     // from 1
  double loss = 0.0;                     // mean over all SGD steps of the round
  std::optional<double> noisy_accuracy;  // of the smoothed model on a test subset, if evaluated
  double perturbation_mean = 0.0;        // |x_adv - x| / epsilon; 0 without an attack
  double perturbation_p95 = 0.0;
  double probability_drop = 0.0;          // by which the attack lowers the true class's probability
  std::optional<double> gradient_cosine;  // between one-point and true gradient, if measured
  int64_t dropped = 0;  // clients whose weights were not finite, or whose node did not answer
  double seconds = 0.0;
  std::optional<double> loss_robust, loss_entropy;  // terms of the loss, if the objective has them
};

/// Returns the header line, with its line end.
std::string round_header();
/// Returns a row as a line, with its line end.
std::string format_round(const RoundRow& row);

/// Parse a table from text, in which `name` is its name in messages, or from a file. A last line
/// without its end is left out. Throw an Error that names the line if anything else is wrong.
/// Tables of version 0.1, without the terms of the loss, are accepted.
std::vector<RoundRow> parse_rounds(std::string_view text, const std::string& name);
std::vector<RoundRow> read_rounds(const std::filesystem::path& path);

/// Returns whether an attack moved images in any round.
bool has_attack(const std::vector<RoundRow>& rows);

}  // namespace fedsmooth
