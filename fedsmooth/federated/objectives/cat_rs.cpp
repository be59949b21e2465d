#include <algorithm>
#include <cmath>

#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/objectives/example_rows.h"
#include "fedsmooth/federated/objectives/objective_rows.h"
#include "fedsmooth/federated/objectives/published_settings.h"
#include "fedsmooth/federated/objectives/scores/cat_rs.h"

namespace fedsmooth {
namespace {

ScoreWeights<double> cat_rs_weights(const LocalTask& task) {
  return {task.objective.lambda.value_or(by_sigma(task, 0.5, 1.0, 2.0))};
}

NoiseAscent cat_rs_ascent(const LocalTask& task) {
  NoiseAscent ascent{NoiseAscent::Kind::kTeacher, task.objective.steps.value_or(4)};
  ascent.step_size = task.objective.step_size.value_or(2 * NoiseAscent::kRadius /
                                                       static_cast<double>(ascent.steps));
  return ascent;
}

struct Moments {
  double mean = 0, rms = 0;
};

Moments moments(const float* values, int64_t size) {
  Moments m;
  for (int64_t j = 0; j < size; ++j) {
    m.mean += values[j] / static_cast<double>(size);
    m.rms += double{values[j]} * double{values[j]} / static_cast<double>(size);
  }
  m.rms = std::sqrt(m.rms);
  return m;
}

// Into the ball around delta, then with delta's moments.
void keep_near(float* moved, const float* delta, int64_t size) {
  double squares = 0;
  for (int64_t j = 0; j < size; ++j) {
    squares += (double{moved[j]} - delta[j]) * (double{moved[j]} - delta[j]);
  }
  const auto scale =
      static_cast<float>(std::min(1.0, NoiseAscent::kRadius / (std::sqrt(squares) + 1e-7)));
  for (int64_t j = 0; j < size; ++j) moved[j] = delta[j] + (moved[j] - delta[j]) * scale;
  const Moments to = moments(delta, size), from = moments(moved, size);
  const double ratio = to.rms / std::max(from.rms, 1e-30);
  for (int64_t j = 0; j < size; ++j) {
    moved[j] = static_cast<float>(to.mean + (moved[j] - from.mean) * ratio);
  }
}

// x + delta_1, ..., x + delta_m, x + delta'_1, ..., x + delta'_m: each delta' is delta moved up
// KL(q || p), with q the teacher's votes.
Examples list_confident(LocalStep& step, const Batch& b, const Array& delta) {
  const DifferentiableClassifier F = answers_of(step.passes);
  const NoiseAscent ascent = cat_rs_ascent(step.task);
  const int64_t m = delta.size(1), rows = b.x.size(0) * m, size = b.x.count() / b.x.size(0);
  Examples list{{}, b.y, 2 * m};
  list.targets = step.task.teacher.pick(b.indices);  // [B, K]
  const int64_t classes = list.targets.size(1);
  Array moved = delta.clone();
  for (int64_t t = 0; t < ascent.steps; ++t) {
    const Array logits = F.logits(noisy_copies(b.x, moved));
    Array gradient(logits.sizes());
    for (int64_t row = 0; row < rows; ++row) {
      subtract_target(gradient, logits, row, list.targets.floats() + row / m * classes);
    }
    const Array g = F.backward(gradient);
    for (int64_t row = 0; row < rows; ++row) {
      float* values = moved.floats() + row * size;
      step_by_unit(values, g.floats() + row * size, size, ascent.step_size);
      keep_near(values, delta.floats() + row * size, size);
    }
  }
  for (int64_t j = 0; j < b.x.size(0); ++j) {
    float uniform = 0;
    fill_uniform(step.streams.of(Purpose::kObjective, step.i), static_cast<uint32_t>(j), &uniform,
                 1);
    list.draws.push_back(uniform);
  }
  list.rows = interleave(noisy_copies(b.x, delta), noisy_copies(b.x, moved), b.x.size(0));
  return list;
}

}  // namespace

Objective cat_rs_objective() {
  return {.name = "cat-rs",
          .score = CatRs::add<double>,
          .batched = {{ScoreKind::kCatRs, BatchedExamples::kMoved}},
          .keys = {"lambda", "steps", "step_size", "teacher", "teacher_votes"},
          .weights = cat_rs_weights,
          .list = list_confident,
          .ascent = cat_rs_ascent};
}

}  // namespace fedsmooth
