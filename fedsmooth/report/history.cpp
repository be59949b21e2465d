#include "fedsmooth/report/history.h"

#include <cmath>

namespace fedsmooth {
namespace {

constexpr size_t kPointsDrawn = 1000;

}  // namespace

std::vector<Strip> training_strips() {
  return {{"loss", {}, [](const RoundRow& row) { return row.loss; }},
          {"noisy accuracy (%)",
           {0, 10},
           [](const RoundRow& row) {
             return row.noisy_accuracy ? std::optional(100 * *row.noisy_accuracy) : std::nullopt;
           }},
          {"seconds per round", {0}, [](const RoundRow& row) { return row.seconds; }}};
}

std::vector<Strip> attack_strips() {
  return {{"|x_adv − x| / ε",
           {0, 1},
           [](const RoundRow& row) { return row.perturbation_mean; },
           [](const RoundRow& row) { return row.perturbation_p95; },
           "95th percentile"},
          {"fall of the true class’s probability",
           {0, 0.1},
           [](const RoundRow& row) { return row.probability_drop; }},
          {"cosine of one-point to true gradient", {0, 1}, [](const RoundRow& row) {
             return row.gradient_cosine;
           }}};
}

std::vector<std::pair<double, double>> strip_points(const std::vector<RoundRow>& rounds,
                                                    const Strip::Value& value) {
  std::vector<std::pair<double, double>> points;
  for (const RoundRow& row : rounds) {
    const auto y = value(row);
    if (y && std::isfinite(*y)) points.emplace_back(row.round, *y);
  }
  return points;
}

std::vector<std::pair<double, double>> thin_points(
    const std::vector<std::pair<double, double>>& points) {
  const size_t step = points.size() / kPointsDrawn + 1;
  std::vector<std::pair<double, double>> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % step == 0 || i + 1 == points.size()) kept.push_back(points[i]);
  }
  return kept;
}

}  // namespace fedsmooth
