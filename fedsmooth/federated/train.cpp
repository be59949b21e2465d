#include "fedsmooth/federated/train.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/federated/draws.h"

namespace fedsmooth {
namespace {

double schedule_factor(Schedule schedule, int64_t t, int64_t rounds) {
  const double done = static_cast<double>(t) / static_cast<double>(rounds);
  switch (schedule) {
    case Schedule::kConstant:
      return 1.0;
    case Schedule::kStep:  // a tenth after half of the rounds, a hundredth after three quarters
      return done < 0.5 ? 1.0 : done < 0.75 ? 0.1 : 0.01;
    case Schedule::kCosine:
      return 0.5 * (1 + std::cos(M_PI * done));
  }
  TORCH_CHECK(false, "schedule: unknown kind");
}

// theta <- theta + v, v <- beta v + (average - theta); beta = 0 is the plain average.
void move_server(ServerState& state, Weights average, double momentum) {
  if (momentum == 0.0) {
    state.global = std::move(average);
    return;
  }
  for (size_t i = 0; i < average.size(); ++i) {
    const Tensor step = average[i] - state.global[i];
    if (state.velocity.size() <= i) state.velocity.push_back(at::zeros_like(step));
    state.velocity[i] = state.velocity[i] * momentum + step;
    state.global[i] = state.global[i] + state.velocity[i];
  }
}

}  // namespace

Cohort sample_cohort(const Partition& partition, int64_t count, uint64_t seed, int64_t t) {
  Cohort cohort;
  Draws draws({make_key(seed, Purpose::kCohort, static_cast<uint64_t>(t))});
  cohort.clients = draws.choose(count, partition.clients());
  std::sort(cohort.clients.begin(), cohort.clients.end());
  for (const int64_t k : cohort.clients) {
    cohort.images.push_back(partition.images(k));
    cohort.total += static_cast<int64_t>(cohort.images.back().size());
  }
  return cohort;
}

RoundResult SerialExecutor::run(const LocalTask& task, const Weights& global, const Cohort& cohort,
                                int64_t t) {
  RoundResult result;
  const Forward forward = plain_forward(task.network);
  for (size_t i = 0; i < cohort.clients.size(); ++i) {
    const Update update =
        local_train(task, forward, global, cohort.clients[i], cohort.images[i], t);
    const auto held = static_cast<double>(cohort.images[i].size());
    if (result.sum.add(update.weights, held / static_cast<double>(cohort.total))) {
      result.telemetry.add(update.telemetry);
    }
  }
  return result;
}

LocalTask task_in_round(const LocalTask& task, const TrainOptions& o, int64_t t) {
  LocalTask now = task;
  now.local.learning_rate *= schedule_factor(o.schedule, t, o.rounds);
  if (t < task.attack.warmup_rounds) {
    now.attack.epsilon *=
        static_cast<double>(t + 1) / static_cast<double>(task.attack.warmup_rounds);
  }
  return now;
}

// Algorithm 1. The client's side is local_train() in client.cpp.
void train(const LocalTask& task, const TrainOptions& o, const Partition& partition,
           Executor& executor, ServerState& state, const OnRound& on_round) {
  for (int64_t t = state.round; t < o.rounds; ++t) {
    const Cohort cohort = sample_cohort(partition, o.clients_per_round, task.seed, t);
    const RoundResult result = executor.run(task_in_round(task, o, t), state.global, cohort, t);
    if (result.sum.kept_share() == 0) {
      throw Error(
          "round {}: every client's weights became infinite or too large; lower "
          "train.local.learning_rate",
          t + 1);
    }
    move_server(state, result.sum.average(state.global), o.server_momentum);
    state.round = t + 1;
    if (!on_round(state, {t + 1, result.sum.dropped(), result.telemetry})) return;
  }
}

void check_train_options(const TrainOptions& o, const AttackOptions& attack,
                         const Partition& partition) {
  if (o.method == Method::kAdversarial && attack.estimator != Estimator::kStochastic) {
    throw Error(
        "attack.estimator: one-point and two-point need noise, which train.method=\"adversarial\" "
        "does without; use stochastic");
  }
  if (o.clients_per_round > partition.clients()) {
    throw Error("train.clients_per_round={}: there are {} clients", o.clients_per_round,
                partition.clients());
  }
}

}  // namespace fedsmooth
