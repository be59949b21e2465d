#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/draws.h"
#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/objectives/example_rows.h"
#include "fedsmooth/federated/objectives/objective_rows.h"
#include "fedsmooth/federated/objectives/published_settings.h"
#include "fedsmooth/federated/objectives/scores/cross_entropy.h"

namespace fedsmooth {
namespace {

double first_late_epoch(const LocalTask& task) { return by_sigma(task, 60.0, 70.0, 60.0); }

// Whether images are chosen and noises moved; until then it is gaussian.
bool is_late(const LocalTask& task) { return published_epoch(task) >= first_late_epoch(task); }

constexpr int64_t kDropVotes = 100, kWeightVotes = 16;

// Phi^-1 of the 90% lower bound on a share of which `right` of kWeightVotes votes were seen, but at
// least three quarters.
double image_weight(int64_t right) {
  const auto k = static_cast<double>(std::max(right, 3 * kWeightVotes / 4));
  const double lower = boost::math::ibeta_inv(k, kWeightVotes - k + 1, 0.1);
  return boost::math::quantile(boost::math::normal(), lower);
}

// One step of each noise that is not `wrong` yet, at its own length.
void step_noises(const Array& g, double step_size, const std::vector<double>& lengths,
                 const std::vector<bool>& wrong, Array& moved) {
  const auto rows = std::ssize(lengths);
  const int64_t size = moved.count() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    if (wrong[row]) continue;
    float* values = moved.floats() + row * size;
    step_by_unit(values, g.floats() + row * size, size, step_size);
    const double length = l2_norms(moved.with_sizes({rows, size}).part(row, 1)).front();
    const auto scale = static_cast<float>(lengths[row] / std::max(length, 1e-30));
    for (int64_t j = 0; j < size; ++j) values[j] *= scale;
  }
}

NoiseAscent sun_ascent(const LocalTask& task) {
  if (!is_late(task)) return {};
  const ObjectiveOptions& o = task.objective;
  return {NoiseAscent::Kind::kUntilWrong, o.steps.value_or(by_sigma<int64_t>(task, 3, 6, 4)),
          o.step_size.value_or(by_sigma(task, 0.25, 0.25, 0.5))};
}

// Each noise is moved up its own cross entropy until its copy is answered wrongly.
Examples list_hard_noises(LocalStep& step, const Batch& b, const Array& delta) {
  const NoiseAscent ascent = sun_ascent(step.task);
  const int64_t m = delta.size(1), rows = b.x.size(0) * m;
  const DifferentiableClassifier F = answers_of(step.passes);
  const std::vector<double> lengths = l2_norms(delta.with_sizes({rows, delta.count() / rows}));
  std::vector<bool> wrong(rows, false);
  Array moved = delta.clone();
  for (int64_t t = 0; t < ascent.steps; ++t) {
    const Array logits = F.logits(noisy_copies(b.x, moved));
    Array gradient(logits.sizes());
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<float> label(logits.size(1));
      label[b.y[row / m]] = 1;
      subtract_target(gradient, logits, row, label.data());
      if (answer(logits, row) != b.y[row / m]) wrong[row] = true;
    }
    step_noises(F.backward(gradient), ascent.step_size, lengths, wrong, moved);
  }
  return {noisy_copies(b.x, moved), b.y, m};
}

// Renewed every ten epochs.
std::optional<int64_t> table_of_round(const LocalTask& task) {
  if (!is_late(task)) return {};
  return static_cast<int64_t>((published_epoch(task) - first_late_epoch(task)) / 10);
}

// Images that few votes get right are dropped for good: they weigh nothing.
Array weigh_images(const LocalTask& task, const RightVotes& votes, const Array& before) {
  std::vector<int64_t> kept(task.data.size());
  std::iota(kept.begin(), kept.end(), int64_t{0});
  if (before.defined()) {
    std::erase_if(kept, [&](int64_t i) { return before.floats()[i] == 0; });
  } else {
    const double fewest = by_sigma(task, 0.5, 0.4, 0.4) * kDropVotes;
    const std::vector<int64_t> right = votes(kept, 0, kDropVotes);
    std::erase_if(kept, [&](int64_t i) { return static_cast<double>(right[i]) < fewest; });
  }
  const std::vector<int64_t> right = votes(kept, kDropVotes, kWeightVotes);
  Array weights({task.data.size()});
  for (size_t j = 0; j < kept.size(); ++j) {
    weights.floats()[kept[j]] = static_cast<float>(image_weight(right[j]));
  }
  return weights;
}

// By weight, with replacement; all alike if a client has none that weighs anything.
std::vector<int64_t> draw_worthwhile(const LocalTask& task, const std::vector<int64_t>& images,
                                     int64_t k, int64_t t) {
  const int64_t count = task.local.steps * task.local.batch;
  if (!is_late(task)) return images_of_round(task, images, k, t);
  check(task.image_weights.defined(), "sun: a late round without image weights");
  std::vector<double> sums;  // of the weights so far
  double sum = 0;
  for (const int64_t i : images) sums.push_back(sum += task.image_weights.floats()[i]);
  if (sum == 0) return images_of_round(task, images, k, t);
  Draws draws(Streams{task.seed, t, k}.of(Purpose::kObjective, 0));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    const double drawn = std::min(draws.uniform() * sum, std::nextafter(sum, 0.0));
    order.push_back(images[std::upper_bound(sums.begin(), sums.end(), drawn) - sums.begin()]);
  }
  return order;
}

}  // namespace

Objective sun_objective() {
  return {.name = "sun",
          .score = CrossEntropy::add<double>,
          .batched = {{ScoreKind::kCrossEntropy}},
          .keys = {"steps", "step_size"},
          .list = list_hard_noises,
          .ascent = sun_ascent,
          .choose = draw_worthwhile,
          .table = table_of_round,
          .weigh = weigh_images};
}

}  // namespace fedsmooth
