#include "fedsmooth/federated/objectives/scores/macer.h"
#include "fedsmooth/federated/objectives/objective_rows.h"
#include "fedsmooth/federated/objectives/published_settings.h"

namespace fedsmooth {
namespace {

// At sigma 1 the radius counts after the first third.
ScoreWeights<double> macer_weights(const LocalTask& task) {
  const double last = task.progress < 1.0 / 3 ? 0.0 : 12.0;
  return {task.objective.lambda.value_or(by_sigma(task, 12.0, 6.0, last)), 0, task.smoothing.sigma};
}

}  // namespace

Objective macer_objective() {
  return {.name = "macer",
          .score = Macer::add<double>,
          .batched = {{ScoreKind::kMacer}},
          .keys = {"lambda", "examples"},
          .weights = macer_weights};
}

}  // namespace fedsmooth
