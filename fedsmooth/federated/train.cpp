#include "fedsmooth/federated/train.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/draws.h"
#include "fedsmooth/base/error.h"

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

// theta <- theta + v, v <- beta v + (average - theta); beta = 0 is the plain average. Running
// statistics are averaged whatever beta is: carried on, a variance would become negative.
void move_server(ServerState& state, const Network& network, Weights average, double momentum) {
  if (momentum == 0.0) {
    state.global = std::move(average);
    return;
  }
  const std::vector<Parameter> known = parameters(network);
  for (size_t i = 0; i < average.size(); ++i) {
    if (state.velocity.size() <= i) state.velocity.emplace_back(average[i].sizes());
    const Array before = state.global[i];
    state.global[i] = average[i];
    if (!known[i].trained) continue;
    // New arrays: what was written as a checkpoint may still be read.
    state.velocity[i] = state.velocity[i].clone();
    float *theta = state.global[i].floats(), *v = state.velocity[i].floats();
    for (int64_t j = 0; j < before.count(); ++j) {
      v[j] = v[j] * static_cast<float>(momentum) + (theta[j] - before.floats()[j]);
      theta[j] = before.floats()[j] + v[j];
    }
  }
}

Round next_round(const Training& run) {
  const int64_t t = run.state.round;
  return {task_in_round(run.task, run.options, t), run.state.global,
          sample_cohort(run.partition, run.options.clients_per_round, run.task.seed, t), t,
          run.number};
}

// The server's part of a round. False if the run ends here.
bool end_round(const Training& run, const RoundResult& result) {
  ServerState& state = run.state;
  if (result.sum.kept_share() == 0) {
    throw Error(
        "round {}: every client's weights became infinite or too large; "
        "train.local.learning_rate={} or smoothing.sigma={} may be too large",
        state.round + 1, run.task.local.learning_rate, run.task.smoothing.sigma);
  }
  move_server(state, run.task.network, result.sum.average(state.global),
              run.options.server_momentum);
  ++state.round;
  const bool go_on = run.on_round(state, {state.round, result.sum.dropped(), result.telemetry});
  return go_on && state.round < run.options.rounds;
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

RoundResult run_round(Executor& executor, const Round& round) {
  return std::move(executor.run({round}).front());
}

std::vector<RoundResult> SerialExecutor::run(const std::vector<Round>& rounds) {
  std::vector<RoundResult> results;
  for (const Round& round : rounds) {
    RoundResult& result = results.emplace_back();
    const Cohort& cohort = round.cohort;
    const std::unique_ptr<Passes> passes = make_(round.task.network);
    for (size_t i = 0; i < cohort.clients.size(); ++i) {
      const Update update = local_train(round.task, *passes, round.global, cohort.clients[i],
                                        cohort.images[i], round.t);
      if (result.sum.add(update.weights, cohort.share(i))) result.telemetry.add(update.telemetry);
    }
  }
  return results;
}

LocalTask task_in_round(const LocalTask& task, const TrainOptions& o, int64_t t) {
  LocalTask now = task;
  now.progress = static_cast<double>(t) / static_cast<double>(o.rounds);
  now.local.learning_rate *= schedule_factor(o.schedule, t, o.rounds);
  if (t < task.attack.warmup_rounds) {
    now.attack.epsilon *=
        static_cast<double>(t + 1) / static_cast<double>(task.attack.warmup_rounds);
  }
  return now;
}

// Algorithm 1. The client's side is local_train() in client.cpp.
std::vector<std::exception_ptr> train_side_by_side(const std::vector<Training>& runs,
                                                   Executor& executor) {
  std::vector<std::exception_ptr> thrown(runs.size());
  std::vector<size_t> going;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].state.round < runs[i].options.rounds) going.push_back(i);
  }
  while (!going.empty()) {
    std::vector<Round> rounds;
    for (const size_t i : going) rounds.push_back(next_round(runs[i]));
    const std::vector<RoundResult> results = executor.run(rounds);
    std::vector<size_t> still_going;
    for (size_t j = 0; j < going.size(); ++j) {
      try {
        if (end_round(runs[going[j]], results[j])) still_going.push_back(going[j]);
      } catch (...) {
        thrown[going[j]] = std::current_exception();
      }
    }
    going = std::move(still_going);
  }
  return thrown;
}

void train(const LocalTask& task, const TrainOptions& o, const Partition& partition,
           Executor& executor, ServerState& state, const OnRound& on_round) {
  const auto thrown = train_side_by_side({{task, o, partition, state, on_round}}, executor);
  if (thrown.front()) std::rethrow_exception(thrown.front());
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
