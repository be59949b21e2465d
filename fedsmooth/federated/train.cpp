#include "fedsmooth/federated/train.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/draws.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/memory.h"

namespace fedsmooth {
namespace {

double schedule_factor(const TrainOptions& o, int64_t t) {
  const double done = static_cast<double>(t) / static_cast<double>(o.rounds);
  switch (o.schedule) {
    case Schedule::kConstant:
      return 1.0;
    case Schedule::kStep: {
      int64_t passed = (done >= 0.5) + (done >= 0.75);
      if (!o.milestones.empty()) {
        passed = std::count_if(o.milestones.begin(), o.milestones.end(),
                               [&](int64_t milestone) { return milestone <= t; });
      }
      double divisor = 1;  // by which a tenth of a tenth is a hundredth, to the bit
      for (; passed > 0; --passed) divisor *= 1 / o.decay;
      return 1 / divisor;
    }
    case Schedule::kCosine:
      return 0.5 * (1 + std::cos(M_PI * done));
  }
  throw Bug("schedule: unknown kind");
}

// Rising; a part of a random order of the partition's members, for which each group has a stream of
// its own. The key is a child of the partition's.
std::vector<int64_t> members_of(const Cluster& cluster, const Partition& partition, uint64_t seed) {
  const std::vector<int64_t> all = partition.members();
  if (cluster.count == 1) return all;
  const auto count = std::ssize(all);
  const std::vector<int64_t> order =
      Draws({make_key(seed, Purpose::kPartition, 1), static_cast<uint32_t>(partition.group())})
          .choose(count, count);
  const auto edge = [&](int64_t number) { return number * count / cluster.count; };
  std::vector<int64_t> members;
  for (int64_t i = edge(cluster.number); i < edge(cluster.number + 1); ++i) {
    members.push_back(all[order[i]]);
  }
  std::sort(members.begin(), members.end());
  return members;
}

// Before anything asks for that memory: the system may end the process instead of refusing it.
void check_step_fits(const LocalTask& task, int64_t room) {
  const auto& [channels, height, width] = task.network.input;
  const double images =
      static_cast<double>(task.local.batch) * static_cast<double>(noises_of(task));
  const double bytes = images * static_cast<double>(channels * height * width) * sizeof(float);
  if (bytes <= static_cast<double>(room)) return;
  throw Error(
      "train.local.batch={}, smoothing.m={}: the noisy images of one step take {:.2f} GB, and "
      "{:.2f} GB of memory are free; make one of them smaller",
      task.local.batch, task.smoothing.m, bytes / 1e9, static_cast<double>(room) / 1e9);
}

ValueBounds bounds_of(const TrainOptions& o) {
  return o.mode == Mode::kCentralized ? kFinite : kAveraged;
}

// Refuses global weights that are out of bounds. Averages are not: the server's step moved them.
void check_global(const Training& run) {
  const auto why =
      out_of_bounds(run.state.global, parameters(run.task.network), bounds_of(run.options));
  if (!why) return;
  const ServerOptions& server = run.options.server;
  throw Error(
      "round {}: {} after the server's step; server.learning_rate={} may be too large for "
      "server.optimizer={:?}",
      run.state.round, *why,
      server.learning_rate == 0 ? "auto" : fmt::format("{}", server.learning_rate),
      server.optimizer);
}

// For a round of which no client's weights could be kept.
[[noreturn]] void refuse_round(const Training& run, const RoundResult& theta_k) {
  check_global(run);
  const std::string first = theta_k.named.empty()
                                ? "no client's weights were finite"
                                : fmt::format("every client was dropped (client {}: {})",
                                              theta_k.named[0].client, theta_k.named[0].why);
  throw Error("round {}: {}; train.local.learning_rate={} or smoothing.sigma={} may be too large",
              run.state.round + 1, first, run.task.local.learning_rate, run.task.smoothing.sigma);
}

// The server's step, by the average of what clients sent after `sent`.
void move_global(const Training& run, RoundResult theta_k, const Weights& sent) {
  const TrainOptions& o = run.options;
  auto& [t, theta, kept, velocity, cluster, so_far] = run.state;
  AggregateOptions by = o.aggregate;
  if (t == 0) by.sfat = 1;  // first losses say more of the first weights than of clients
  const Weights average = reduce(by, run.task.network, std::move(theta_k), sent);
  server_step(o.server, run.task.network, average, theta, kept);
}

// A group keeps the model that it has where its clients' weights cannot be reduced, or the server's
// step leads out of bounds: a group that ended for that would end all others, at the will of one
// client.
void move_group(const Training& run, RoundResult theta_k, const Weights& sent) {
  const Weights global = run.state.global;  // server_step() replaces arrays
  const NamedWeights kept = run.state.kept;
  bool moved = true;
  try {
    move_global(run, std::move(theta_k), sent);
    const std::vector<Parameter> known = parameters(run.task.network);
    moved = !out_of_bounds(run.state.global, known, bounds_of(run.options));
  } catch (const Error&) {
    moved = false;
  }
  if (moved) return;
  run.state.global = global;
  run.state.kept = kept;
}

// Refuses groups that are too small for the clusters or the reduction.
void check_group(const TrainOptions& o, const Partition& partition) {
  const int64_t members = partition.count_members(), M = o.server.clusters;
  const std::string group = fmt::format("group {}, of {} clients", partition.group(), members);
  if (members < M) {
    throw Error("server.clusters={}: {}, cannot be divided into them", M, group);
  }
  try {
    check_aggregate_options(o.aggregate, std::min(o.clients_per_round / M, members / M));
  } catch (const Error& error) {
    throw Error("{}: {}", group, error.what());
  }
}

}  // namespace

Cohort sample_cohort(const Partition& partition, int64_t count, uint64_t seed, int64_t t,
                     const Cluster& cluster) {
  const std::vector<int64_t> members = members_of(cluster, partition, seed);
  if (partition.group() > 0) count = std::min(count, std::ssize(members));
  Cohort cohort;
  Draws draws({make_key(seed, Purpose::kCohort, static_cast<uint64_t>(t)),
               static_cast<uint32_t>(cluster.number), static_cast<uint32_t>(partition.group())});
  for (const int64_t i : draws.choose(count, std::ssize(members))) {
    cohort.clients.push_back(members[i]);
  }
  std::sort(cohort.clients.begin(), cohort.clients.end());
  for (const int64_t k : cohort.clients) {
    cohort.images.push_back(partition.images(k));
    cohort.total += static_cast<int64_t>(cohort.images.back().size());
  }
  return cohort;
}

LocalTask task_in_round(const LocalTask& task, const TrainOptions& o, int64_t clients, int64_t t) {
  LocalTask now = task;
  if (o.byzantine.kind == ByzantineKind::kLabelFlip) {
    now.flippers = byzantine_clients(o.byzantine, clients, task.seed);
  }
  now.continuous = o.mode == Mode::kCentralized;
  now.progress = static_cast<double>(t) / static_cast<double>(o.rounds);
  now.local.learning_rate *= schedule_factor(o, t);
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
    const Round round = next_round(run);               // draws S_t, or the part of a cluster
    RoundResult theta_k = run_round(executor, round);  // theta_k <- LocalTrain(k, theta), k in S_t
    if (!aggregate(run, std::move(theta_k))) return;   // theta <- sum_k (n_k / n) theta_k
  }
}

Round next_round(const Training& run) {
  const TrainOptions& o = run.options;
  const int64_t t = run.state.round, M = o.server.clusters;
  Cohort S_t = sample_cohort(run.partition, o.clients_per_round / M, run.task.seed, t,
                             {run.state.cluster, M});
  LocalTask task = task_in_round(run.task, o, run.partition.clients(), t);
  if (run.image_weights) task.image_weights = run.image_weights(run.state, task);
  return {std::move(task),
          weights_to_send(o.server, run.task.network, run.state.global, run.state.kept),
          std::move(S_t),
          t,
          run.number,
          gathered_for(o),
          run.state.velocity.empty() ? nullptr : &run.state.velocity};
}

bool aggregate(const Training& run, RoundResult theta_k) {
  const TrainOptions& o = run.options;
  auto& [t, theta, kept, velocity, cluster, so_far] = run.state;
  begin_server(o.server, theta, kept);  // a round that is given up leaves its state too
  const Weights sent = weights_to_send(o.server, run.task.network, theta, kept);
  if (o.byzantine.corrupts_updates()) {
    const auto bad = byzantine_clients(o.byzantine, run.partition.clients(), run.task.seed);
    corrupt_updates(o.byzantine, bad, run.task.seed, t, sent, theta_k);
    theta_k.drop_beyond(bounds_of(o), parameters(run.task.network));
  }
  std::ranges::sort(theta_k.named, {}, &DroppedClient::client);
  // No client may end the training of its group, without which the others would give no answer.
  const bool in_group = run.partition.group() > 0;
  if (in_group && theta_k.nothing_kept()) theta_k.is_given_up = true;
  if (theta_k.nothing_kept() && !theta_k.is_given_up) refuse_round(run, theta_k);
  so_far.dropped += theta_k.dropped;
  std::ranges::move(theta_k.named, std::back_inserter(so_far.named));
  so_far.telemetry.add(theta_k.telemetry);
  if (o.mode == Mode::kCentralized) velocity = std::move(theta_k.each.front().velocity);
  if (!theta_k.is_given_up) {
    (in_group ? move_group : move_global)(run, std::move(theta_k), sent);
  }
  if (++cluster < o.server.clusters) return true;
  cluster = 0;
  so_far.round = ++t;
  average_late_models(o.server, t, o.rounds, theta, kept);
  if (t == o.rounds) check_global(run);
  return run.on_round(run.state, std::exchange(so_far, {}));
}

Gather gathered_for(const TrainOptions& o) {
  const bool each = o.byzantine.corrupts_updates() || o.mode == Mode::kCentralized;
  return each ? Gather::kEach : gathered_for(o.aggregate);
}

int64_t check_executor(const Training& run, const Executor& executor, int64_t room) {
  if (rounds_left(run) <= 0) return room;
  const Objective& objective = objective_of(run.task.method);
  if (objective.table != nullptr && !run.image_weights && !run.task.image_weights.defined()) {
    throw Error("train.method={:?}: needs Training::image_weights", objective.name);
  }
  check_step_fits(run.task, room);
  const Round round = next_round(run);
  if (const auto reason = executor.unsupported(round)) throw Error("{}", *reason);
  if (round.gather == Gather::kSum) return room;
  const int64_t bytes = bytes_of_cohort(run.task.network, std::ssize(round.cohort.clients));
  check_cohort_fits(bytes, room);
  return room - bytes;
}

void check_train_options(const TrainOptions& o, const AttackOptions& attack,
                         const Partition& partition) {
  if (o.method == Method::kAdversarial && attack.estimator != Estimator::kStochastic) {
    throw Error(
        "attack.estimator: one-point and two-point need noise, which train.method=\"adversarial\" "
        "does without; use stochastic");
  }
  if (!o.milestones.empty() && o.schedule != Schedule::kStep) {
    throw Error("train.milestones: need train.schedule=\"step\"");
  }
  if (o.clients_per_round > partition.count_members() && partition.group() == 0) {
    throw Error("train.clients_per_round={}: there are {} clients", o.clients_per_round,
                partition.count_members());
  }
  if (o.mode == Mode::kCentralized && o.local.decay != 1) {
    throw Error(
        "train.local.decay={}: is of a client's round, and train.mode=\"centralized\" has none; "
        "use "
        "train.schedule",
        o.local.decay);
  }
  if (o.server.average_from > o.rounds) {
    throw Error("server.average_from={}: there are {} rounds", o.server.average_from, o.rounds);
  }
  check_server_options(o.server);
  const int64_t M = o.server.clusters;
  if (o.clients_per_round % M != 0) {
    throw Error("server.clusters={}: must divide train.clients_per_round={}", M,
                o.clients_per_round);
  }
  if (partition.group() > 0) {
    check_group(o, partition);
  } else {
    check_aggregate_options(o.aggregate, o.clients_per_round / M);
  }
  check_byzantine_options(o.byzantine, partition.clients());
}

}  // namespace fedsmooth
