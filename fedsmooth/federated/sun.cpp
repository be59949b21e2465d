#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/federated/example_rows.h"
#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/objective_rows.h"
#include "fedsmooth/federated/objectives/cross_entropy.h"
#include "fedsmooth/federated/published.h"

namespace fedsmooth {
namespace {

// Whether images are chosen and noises moved; until then it is gaussian.
bool is_late(const LocalTask& task) {
  return published_epoch(task) >= by_sigma(task, 60.0, 70.0, 60.0);
}

constexpr int64_t kDropVotes = 100, kWeightVotes = 16;

// Images are chosen once a round, of continuous tasks too.
Streams streams_of_round(const LocalStep& step) {
  return {step.streams.seed, step.t, step.streams.client};
}

// How many of votes [first, first + count) for image `index` are right.
int64_t right_votes(LocalStep& step, const Array& x, int64_t index, int64_t first, int64_t count) {
  const LocalTask& task = step.task;
  const Stream stream = streams_of_round(step).of(Purpose::kScreening, index);
  Array copies({count, x.size(1), x.size(2), x.size(3)});
  const auto sigma = static_cast<float>(task.smoothing.sigma);
  for (int64_t i = 0; i < count; ++i) {
    float* out = copies.floats() + i * x.count();
    fill_normal(stream, static_cast<uint32_t>(first + i), out, x.count());
    for (int64_t j = 0; j < x.count(); ++j) out[j] = x.floats()[j] + sigma * out[j];
  }
  const Array logits = step.passes.forward(copies, std::nullopt);
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) right += answer(logits, i) == task.data.label(index);
  return right;
}

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

// Each noise is moved up its own cross entropy until its copy is answered wrongly.
Array move_noises(LocalStep& step, const Batch& b, const Array& delta) {
  const ObjectiveOptions& o = step.task.objective;
  const int64_t steps = o.steps.value_or(by_sigma<int64_t>(step.task, 3, 6, 4));
  const double step_size = o.step_size.value_or(by_sigma(step.task, 0.25, 0.25, 0.5));
  const int64_t m = delta.size(1), rows = b.x.size(0) * m;
  const DifferentiableClassifier F = answers_of(step.passes);
  const std::vector<double> lengths = l2_norms(delta.with_sizes({rows, delta.count() / rows}));
  std::vector<bool> wrong(rows, false);
  Array moved = delta.clone();
  for (int64_t t = 0; t < steps; ++t) {
    const Array logits = F.logits(noisy_copies(b.x, moved));
    Array gradient(logits.sizes());
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<float> label(logits.size(1));
      label[b.y[row / m]] = 1;
      subtract_target(gradient, logits, row, label.data());
      if (answer(logits, row) != b.y[row / m]) wrong[row] = true;
    }
    step_noises(F.backward(gradient), step_size, lengths, wrong, moved);
  }
  return moved;
}

Examples list_hard_noises(LocalStep& step, const Batch& b, const Array& delta) {
  const Array moved = is_late(step.task) ? move_noises(step, b, delta) : delta;
  return {noisy_copies(b.x, moved), b.y, delta.size(1)};
}

// Images that few votes of the client's first weights get right are dropped; of the others those
// are drawn more often that many get right.
std::vector<int64_t> choose_worthwhile(LocalStep& step, const std::vector<int64_t>& images) {
  const LocalTask& task = step.task;
  const int64_t count = task.local.steps * task.local.batch;
  const auto shuffled = [&] { return images_of_round(task, images, step.streams.client, step.t); };
  if (!is_late(task)) return shuffled();
  std::vector<int64_t> kept;
  std::vector<double> sums;  // of the weights so far
  for (const int64_t index : images) {
    const Array x = to_unit_interval(task.data.images.pick({index}));
    const auto right = static_cast<double>(right_votes(step, x, index, 0, kDropVotes));
    if (right < by_sigma(task, 0.5, 0.4, 0.4) * kDropVotes) continue;
    const double weight = image_weight(right_votes(step, x, index, kDropVotes, kWeightVotes));
    kept.push_back(index);
    sums.push_back((sums.empty() ? 0 : sums.back()) + weight);
  }
  if (kept.empty()) return shuffled();
  Draws draws(streams_of_round(step).of(Purpose::kObjective, 0));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = std::upper_bound(sums.begin(), sums.end(), draws.uniform() * sums.back());
    order.push_back(kept[std::min<size_t>(at - sums.begin(), kept.size() - 1)]);
  }
  return order;
}

}  // namespace

Objective sun_objective() {
  return {.name = "sun",
          .score = CrossEntropy::add<double>,
          .keys = {"steps", "step_size"},
          .list = list_hard_noises,
          .choose = choose_worthwhile};
}

}  // namespace fedsmooth
