#include "fedsmooth/federated/objectives/scores/stability.h"
#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/objectives/example_rows.h"
#include "fedsmooth/federated/objectives/objective_rows.h"
#include "fedsmooth/federated/objectives/published_settings.h"

namespace fedsmooth {
namespace {

ScoreWeights<double> stability_weights(const LocalTask& task) {
  return {task.objective.lambda.value_or(by_sigma(task, 2.0, 2.0, 1.0))};
}

// x, x + delta_1, ..., x + delta_m.
Examples list_clean_and_noisy(LocalStep& /*step*/, const Batch& b, const Array& delta) {
  return {interleave(b.x, noisy_copies(b.x, delta), b.x.size(0)), b.y, 1 + delta.size(1)};
}

}  // namespace

Objective stability_objective() {
  return {.name = "stability",
          .score = Stability::add<double>,
          .batched = {{ScoreKind::kStability, BatchedExamples::kAndClean}},
          .keys = {"lambda"},
          .weights = stability_weights,
          .list = list_clean_and_noisy};
}

}  // namespace fedsmooth
