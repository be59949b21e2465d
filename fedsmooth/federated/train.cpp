#include "fedsmooth/federated/train.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/draws.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/memory.h"

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
  throw Bug("schedule: unknown kind");
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

LocalTask task_in_round(const LocalTask& task, const TrainOptions& o, int64_t t) {
  LocalTask now = task;
  now.local.learning_rate *= schedule_factor(o.schedule, t, o.rounds);
  if (t < task.attack.warmup_rounds) {
    now.attack.epsilon *=
        static_cast<double>(t + 1) / static_cast<double>(task.attack.warmup_rounds);
  }
  return now;
}

// Algorithm 1. LocalTrain(k, theta) is local_train() in client.cpp.
void train(const Training& run, Executor& executor) {
  check_executor(run, executor, available_memory());
  while (rounds_left(run) > 0) {
    const Round round = next_round(run);               // S_t, drawn from all clients
    RoundResult theta_k = run_round(executor, round);  // theta_k <- LocalTrain(k, theta), k in S_t
    if (!update(run, std::move(theta_k))) return;      // theta <- sum_k (n_k / n) theta_k
  }
}

Round next_round(const Training& run) {
  const int64_t t = run.state.round;
  Cohort S_t = sample_cohort(run.partition, run.options.clients_per_round, run.task.seed, t);
  const Gather gather = reductions().find(run.options.aggregate.kind).gather;
  return {task_in_round(run.task, run.options, t),
          run.state.global,
          std::move(S_t),
          t,
          run.number,
          gather};
}

bool update(const Training& run, RoundResult theta_k) {
  auto& [t, theta, kept] = run.state;
  if (theta_k.nothing_kept()) {
    throw Error(
        "round {}: every client's weights became infinite or too large; "
        "train.local.learning_rate={} or smoothing.sigma={} may be too large",
        t + 1, run.task.local.learning_rate, run.task.smoothing.sigma);
  }
  const RoundReport report{t + 1, theta_k.sum.dropped(), theta_k.telemetry};
  const Weights average = reduce(run.options.aggregate, std::move(theta_k), theta);
  server_step(run.options.server, run.task.network, average, theta, kept);
  ++t;
  return run.on_round(run.state, report);
}

int64_t check_executor(const Training& run, const Executor& executor, int64_t room) {
  if (rounds_left(run) <= 0) return room;
  if (const auto reason = executor.unsupported(next_round(run))) throw Error("{}", *reason);
  const TrainOptions& o = run.options;
  const int64_t bytes = bytes_kept(o.aggregate, run.task.network, o.clients_per_round);
  check_cohort_fits(o.aggregate, bytes, room);
  return room - bytes;
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
  check_server_options(o.server);
  reductions().find(o.aggregate.kind);
}

}  // namespace fedsmooth
