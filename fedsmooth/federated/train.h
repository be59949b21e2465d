// Algorithm 1 of the paper: Fed-SmoothAdv. How a round's clients are run is the Executor's
// business.
#pragma once

#include <functional>

#include "fedsmooth/federated/aggregate.h"
#include "fedsmooth/federated/client.h"

namespace fedsmooth {

enum class Mode { kFederated, kCentralized };
enum class Schedule { kConstant, kStep, kCosine };

struct TrainOptions {
  Mode mode = Mode::kFederated;
  Method method = Method::kSmoothAdv;
  int64_t rounds = 150;
  int64_t clients_per_round = 100;
  Schedule schedule = Schedule::kConstant;  // of the learning rate over the rounds
  double server_momentum = 0.0;             // 0: plain averaging
  int64_t evaluate_every = 0;               // noisy accuracy every so many rounds; 0: never
  int64_t checkpoint_every = 10;            // rounds
  LocalOptions local;
};

/// The clients of a round, and how many images they hold together.
struct Cohort {
  std::vector<int64_t> clients;
  std::vector<std::vector<int64_t>> images;  // of each
  int64_t total = 0;
};

struct RoundResult {
  FixedPointSum sum;
  Telemetry telemetry;  // of the clients that were kept
};

/// Runs one round's clients: the only seam between the algorithm and how it is executed.
class Executor {
 public:
  virtual ~Executor() = default;

  /// The cohort's weighted sum and telemetry. A client draws from streams of its own number, so the
  /// result does not depend on who runs where.
  virtual RoundResult run(const LocalTask& task, const Weights& global, const Cohort& cohort,
                          int64_t t) = 0;
};

/// One client after another: the oracle for every faster executor.
class SerialExecutor : public Executor {
 public:
  RoundResult run(const LocalTask& task, const Weights& global, const Cohort& cohort,
                  int64_t t) override;
};

/// What the server keeps from round to round.
struct ServerState {
  int64_t round = 0;  // rounds done
  Weights global;
  Weights velocity;  // for server momentum; empty without
};

struct RoundReport {
  int64_t round = 0;  // counted from 1
  int64_t dropped = 0;
  Telemetry telemetry;
};

/// Called after each round; returns false to stop.
using OnRound = std::function<bool(const ServerState&, const RoundReport&)>;

/// S_t: `count` clients without replacement, and their images.
Cohort sample_cohort(const Partition& partition, int64_t count, uint64_t seed, int64_t t);

/// Goes on from `state` to the last round. Every client dropped in a round is an Error.
void train(const LocalTask& task, const TrainOptions& options, const Partition& partition,
           Executor& executor, ServerState& state, const OnRound& on_round);

/// The task as it stands in round t: learning rate by the schedule, epsilon by the warm-up.
LocalTask task_in_round(const LocalTask& task, const TrainOptions& options, int64_t t);

/// Refuses what cannot be trained.
void check_train_options(const TrainOptions& options, const AttackOptions& attack,
                         const Partition& partition);

}  // namespace fedsmooth
