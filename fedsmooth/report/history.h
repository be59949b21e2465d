// Training round by round: the quantities that the figures and the page show, each on an axis of
// its own above a common axis of rounds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fedsmooth/records/rounds.h"

namespace fedsmooth {

/// One quantity, shown as a curve over the rounds.
struct Strip {
  using Value = std::function<std::optional<double>(const RoundRow&)>;

  std::string title;
  std::vector<double> shown;  // values that the axis includes in any case
  Value value;
  Value thin = nullptr;           // a second curve
  std::string_view thin_is = {};  // what the second curve shows
};

/// Returns the strips of loss, noisy accuracy and seconds per round.
std::vector<Strip> training_strips();

/// Joins the rounds of a run's groups, up to the last round that all groups have: the mean of each
/// value over the groups that state it, and the sum of the dropped updates.
std::vector<RoundRow> mean_of_groups(const std::vector<std::vector<RoundRow>>& groups);

/// Returns the strips of the attack in training: the norm of the perturbation over epsilon, the
/// fall of the true class's probability, and the cosine of the one-point to the true gradient.
std::vector<Strip> attack_strips();

/// Returns round and value of each row that has a finite one.
std::vector<std::pair<double, double>> strip_points(const std::vector<RoundRow>& rounds,
                                                    const Strip::Value& value);

/// Keeps every Nth point and the last one, so that at most about 1000 points are left; a picture
/// cannot show more.
std::vector<std::pair<double, double>> thin_points(
    const std::vector<std::pair<double, double>>& points);

}  // namespace fedsmooth
