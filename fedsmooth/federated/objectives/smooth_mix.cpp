#include "fedsmooth/federated/objectives/smooth_mix.h"

#include <limits>
#include <utility>

#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/objectives/example_rows.h"
#include "fedsmooth/federated/objectives/objective_rows.h"
#include "fedsmooth/federated/objectives/published_settings.h"
#include "fedsmooth/federated/objectives/scores/smooth_mix.h"

namespace fedsmooth {
namespace {

ScoreWeights<double> mix_weights(const LocalTask& task) {
  return {task.objective.lambda.value_or(5) * warm_up(task)};
}

// x + delta_1, ..., x + delta_m, x~ + delta_1, ..., x~ + delta_m with x~ = (1 - mix) x + mix x_adv
// and mix uniform in [0, 1/2).
Examples list_mixed(LocalStep& step, const Batch& b, const Array& delta) {
  const LocalTask& task = step.task;
  const double sigma = task.smoothing.sigma;
  const DifferentiableClassifier F = answers_of(step.passes);
  AttackOptions ascent = mix_ascent(task);
  const int64_t steps = std::exchange(ascent.steps, 1);
  Array x_adv = attack_smoothed(F, b.x, b.y, delta, sigma, ascent);
  const double moved = mix_first_step(task);
  const Array x = moved > 0 ? project_l2(x_adv, b.x, moved) : b.x;
  ascent.steps = steps - 1;
  x_adv = attack_smoothed(F, x_adv, b.y, delta, sigma, ascent);

  Examples list{{}, b.y, 2 * delta.size(1)};
  Array x_mixed(x.sizes());
  const int64_t size = x.count() / x.size(0);
  for (int64_t j = 0; j < x.size(0); ++j) {
    float uniform = 0;
    fill_uniform(step.streams.of(Purpose::kObjective, step.i), static_cast<uint32_t>(j), &uniform,
                 1);
    const float mix = uniform / 2;
    list.mix.push_back(mix);
    for (int64_t i = j * size; i < (j + 1) * size; ++i) {
      x_mixed.floats()[i] = (1 - mix) * x.floats()[i] + mix * x_adv.floats()[i];
    }
  }
  list.rows = interleave(noisy_copies(x, delta), noisy_copies(x_mixed, delta), x.size(0));
  return list;
}

}  // namespace

AttackOptions mix_ascent(const LocalTask& task) {
  AttackOptions ascent;
  ascent.steps = task.objective.steps.value_or(4);
  ascent.step_size = task.objective.step_size.value_or(by_sigma(task, 0.5, 1.0, 2.0));
  ascent.epsilon = std::numeric_limits<double>::infinity();
  return ascent;
}

double mix_first_step(const LocalTask& task) {
  return by_sigma(task, 0.0, 1.0, 1.0) * mix_ascent(task).step_size * warm_up(task);
}

Objective smoothmix_objective() {
  return {.name = "smoothmix",
          .score = SmoothMix::add<double>,
          .batched = {{ScoreKind::kSmoothMix, BatchedExamples::kMixed}},
          .keys = {"lambda", "steps", "step_size"},
          .weights = mix_weights,
          .list = list_mixed};
}

}  // namespace fedsmooth
