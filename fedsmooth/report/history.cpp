#include "fedsmooth/report/history.h"

#include <algorithm>
#include <cmath>

namespace fedsmooth {
namespace {

constexpr size_t kPointsDrawn = 1000;

double mean_of(const std::vector<const RoundRow*>& rows, double RoundRow::*value) {
  double sum = 0;
  for (const RoundRow* row : rows) sum += row->*value;
  return sum / static_cast<double>(rows.size());
}

std::optional<double> mean_of_stated(const std::vector<const RoundRow*>& rows,
                                     std::optional<double> RoundRow::*value) {
  double sum = 0;
  int64_t stated = 0;
  for (const RoundRow* row : rows) {
    sum += (row->*value).value_or(0);
    stated += (row->*value).has_value();
  }
  return stated == 0 ? std::nullopt : std::optional(sum / static_cast<double>(stated));
}

RoundRow mean_of(const std::vector<const RoundRow*>& rows) {
  RoundRow mean{rows.front()->round, mean_of(rows, &RoundRow::loss)};
  for (const auto value : {&RoundRow::perturbation_mean, &RoundRow::perturbation_p95,
                           &RoundRow::probability_drop, &RoundRow::seconds}) {
    mean.*value = mean_of(rows, value);
  }
  for (const auto value : {&RoundRow::noisy_accuracy, &RoundRow::gradient_cosine,
                           &RoundRow::loss_robust, &RoundRow::loss_entropy}) {
    mean.*value = mean_of_stated(rows, value);
  }
  for (const RoundRow* row : rows) mean.dropped += row->dropped;
  return mean;
}

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

std::vector<RoundRow> mean_of_groups(const std::vector<std::vector<RoundRow>>& groups) {
  std::vector<RoundRow> means;
  if (groups.empty()) return means;
  const size_t rounds = std::ranges::min(groups, {}, &std::vector<RoundRow>::size).size();
  for (size_t i = 0; i < rounds; ++i) {
    std::vector<const RoundRow*> rows;
    for (const std::vector<RoundRow>& group : groups) rows.push_back(&group[i]);
    means.push_back(mean_of(rows));
  }
  return means;
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
