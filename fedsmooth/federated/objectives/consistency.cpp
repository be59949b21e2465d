#include "fedsmooth/federated/objectives/scores/consistency.h"
#include "fedsmooth/federated/objectives/objective_rows.h"
#include "fedsmooth/federated/objectives/published_settings.h"

namespace fedsmooth {
namespace {

ScoreWeights<double> consistency_weights(const LocalTask& task) {
  const bool attacked = task.objective.examples == ExampleSource::kSmoothAdv;
  const double lambda = attacked ? by_sigma(task, 2.0, 1.0, 1.0) : by_sigma(task, 20.0, 10.0, 10.0);
  return {task.objective.lambda.value_or(lambda), task.objective.eta.value_or(0.5)};
}

}  // namespace

Objective consistency_objective() {
  return {.name = "consistency",
          .score = Consistency::add<double>,
          .batched = {{ScoreKind::kConsistency}},
          .keys = {"lambda", "eta", "examples"},
          .weights = consistency_weights};
}

}  // namespace fedsmooth
