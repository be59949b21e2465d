// rounds.tsv: one row per training round. Loss and telemetry of a round in which a client diverged
// may not be finite; such a cell is empty in the file and NaN here.
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
  double probability_drop = 0.0;  // fall of the true class's smoothed probability by the attack
  std::optional<double> gradient_cosine;  // of the one-point to the true gradient, if measured
  int64_t dropped = 0;  // clients whose weights were not finite, or whose node did not answer
  double seconds = 0.0;
  std::optional<double> loss_robust, loss_entropy;  // terms of the loss, if the objective has them
};

std::string round_header();
std::string format_round(const RoundRow& row);

/// See tsv.h.
std::vector<RoundRow> parse_rounds(std::string_view text, const std::string& name);
std::vector<RoundRow> read_rounds(const std::filesystem::path& path);

/// Whether any image was moved in training.
bool has_attack(const std::vector<RoundRow>& rows);

}  // namespace fedsmooth
