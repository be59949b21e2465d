// Algorithm 1 of the paper, Fed-SmoothAdv: the server's side. An Executor runs the clients, a
// Reduction makes one update of their weights, a ServerOptimizer moves the global weights by it.
#pragma once

#include <functional>

#include "fedsmooth/federated/clients/byzantine.h"
#include "fedsmooth/federated/executor.h"
#include "fedsmooth/federated/reductions/reductions.h"
#include "fedsmooth/federated/server/server_optimizers.h"

namespace fedsmooth {

enum class Mode { kFederated, kCentralized };
enum class Schedule { kConstant, kStep, kCosine };

struct TrainOptions {
  Mode mode = Mode::kFederated;
  Method method = Method::kSmoothAdv;
  int64_t rounds = 150;
  int64_t clients_per_round = 100;
  Schedule schedule = Schedule::kConstant;  // of the learning rate over the rounds
  std::vector<int64_t> milestones;  // schedule step: rounds after which it is multiplied by decay;
  double decay = 0.1;               // none: after a half and after three quarters of them
  int64_t evaluate_every = 0;       // rounds between measurements of noisy accuracy; 0: never
  int64_t checkpoint_every = 10;    // rounds
  LocalOptions local;
  AggregateOptions aggregate;
  ServerOptions server;
  ByzantineOptions byzantine;
};

struct RoundReport {
  int64_t round = 0;                 // counted from 1
  int64_t dropped = 0;               // clients
  std::vector<DroppedClient> named;  // of these, by client; see RoundResult
  Telemetry telemetry;
};

/// What the server keeps from round to round.
struct ServerState {
  int64_t round = 0;  // rounds done
  Weights global;     // theta
  NamedWeights kept;  // by the server's rule
  Weights velocity;   // centralized: the one client's momentum; empty before the first round
  // Within a round of several clusters; empty between rounds.
  int64_t cluster = 0;  // the next one's
  RoundReport so_far;
};

/// Called after each round; returns false to stop.
using OnRound = std::function<bool(const ServerState&, const RoundReport&)>;

/// One run. What is referred to outlives it; a const Training still moves its `state`.
struct Training {
  LocalTask task;
  TrainOptions options;
  const Partition& partition;
  ServerState& state;
  OnRound on_round;
  int64_t number = 0;  // by which an Executor identifies it
  /// The table LocalTask::image_weights of the round that follows the state, for objectives that
  /// have such tables; left out: the task has it.
  std::function<Array(const ServerState&, const LocalTask&)> image_weights = {};
};

/// Algorithm 1, from the run's state to its last round. A round that the executor does not support
/// is refused before the first one. Every client dropped in a round is an Error.
void train(const Training& run, Executor& executor);

// What train() and train_side_by_side() are made of.

/// One of `count` fixed clusters of clients.
struct Cluster {
  int64_t number = 0, count = 1;
};

/// S_t: `count` clients of the cluster without replacement, and their images. A group's cluster
/// that has fewer gives all that it has.
Cohort sample_cohort(const Partition& partition, int64_t count, uint64_t seed, int64_t t,
                     const Cluster& cluster = {});

/// What an executor has to return of a round.
Gather gathered_for(const TrainOptions& options);

/// The task as it stands in round t of a run with so many clients: learning rate by the schedule,
/// epsilon by the warm-up, and who flips labels.
LocalTask task_in_round(const LocalTask& task, const TrainOptions& options, int64_t clients,
                        int64_t t);

/// The round that follows the run's state.
Round next_round(const Training& run);

inline int64_t rounds_left(const Training& run) { return run.options.rounds - run.state.round; }

/// The server's part of a round: moves the run's state by what its clients gave. Returns what
/// on_round does, which is called after the round's last cluster.
bool aggregate(const Training& run, RoundResult theta_k);

/// Refuses a run with a round that the executor does not support, or with steps or cohorts that
/// take more than `room` bytes. Returns the bytes that are left for other runs.
int64_t check_executor(const Training& run, const Executor& executor, int64_t room);

/// Refuses what cannot be trained.
void check_train_options(const TrainOptions& options, const AttackOptions& attack,
                         const Partition& partition);

}  // namespace fedsmooth
