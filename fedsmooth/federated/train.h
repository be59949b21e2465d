// Algorithm 1 of the paper, Fed-SmoothAdv, at the server. An Executor runs the clients, a Reduction
// joins their weights to one update, a ServerOptimizer moves the global weights by it.
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
  /// With kStep: rounds after which the rate is multiplied by `decay`; empty: after a half and
  /// three quarters of the rounds.
  std::vector<int64_t> milestones;
  double decay = 0.1;
  int64_t evaluate_every = 0;     // rounds between measurements of noisy accuracy; 0: never
  int64_t checkpoint_every = 10;  // rounds between checkpoints
  LocalOptions local;
  AggregateOptions aggregate;
  ServerOptions server;
  ByzantineOptions byzantine;
};

struct RoundReport {
  int64_t round = 0;                 // counted from 1
  int64_t dropped = 0;               // number of dropped clients
  std::vector<DroppedClient> named;  // dropped clients by number; see RoundResult
  Telemetry telemetry;
};

/// The state that the server keeps from round to round.
struct ServerState {
  int64_t round = 0;  // rounds done
  Weights global;     // theta
  NamedWeights kept;  // state of the server's rule
  Weights velocity;   // centralized: the one client's momentum; empty before the first round
  // Within a round of several clusters; empty between rounds.
  int64_t cluster = 0;  // number of the next cluster
  RoundReport so_far;
};

/// Called after each round; returns false to stop.
using OnRound = std::function<bool(const ServerState&, const RoundReport&)>;

/// One run. References must outlive it. Constness does not extend to `state`: train() moves it.
struct Training {
  LocalTask task;
  TrainOptions options;
  const Partition& partition;
  ServerState& state;
  OnRound on_round;
  int64_t number = 0;  // identifies the run to an Executor
  /// Returns the table LocalTask::image_weights for the round after the state, for objectives that
  /// have such tables; empty: the task's own is used.
  std::function<Array(const ServerState&, const LocalTask&)> image_weights = {};
};

/// Runs Algorithm 1 from the run's state to its last round. Throws an Error before the first round
/// if the executor does not support it, and when every client of a round is dropped, unless the
/// round was given up.
void train(const Training& run, Executor& executor);

// The parts of train() and train_side_by_side().

/// One of `count` fixed clusters of clients.
struct Cluster {
  int64_t number = 0, count = 1;
};

/// Draws S_t: `count` clients of the cluster, without replacement, with their images. If the
/// cluster of a group has fewer clients, all of them are taken.
Cohort sample_cohort(const Partition& partition, int64_t count, uint64_t seed, int64_t t,
                     const Cluster& cluster = {});

/// Returns the form in which an executor has to return a round's weights.
Gather gathered_for(const TrainOptions& options);

/// Returns the task in round t of a run with `clients` clients: with the learning rate of the
/// schedule, the epsilon of the warm-up, and the clients that flip labels.
LocalTask task_in_round(const LocalTask& task, const TrainOptions& options, int64_t clients,
                        int64_t t);

/// Returns the round that follows the run's state.
Round next_round(const Training& run);

inline int64_t rounds_left(const Training& run) { return run.options.rounds - run.state.round; }

/// Moves the run's state by the results of a round's clients. Calls on_round after the round's last
/// cluster and returns its answer; true before that.
bool aggregate(const Training& run, RoundResult theta_k);

/// Refuses a run with a round that the executor does not support, or with steps or cohorts that
/// take more than `room` bytes. Returns the bytes that are left for other runs.
int64_t check_executor(const Training& run, const Executor& executor, int64_t room);

/// Throws an Error for options that cannot be trained.
void check_train_options(const TrainOptions& options, const AttackOptions& attack,
                         const Partition& partition);

}  // namespace fedsmooth
