// Algorithm 1 of the paper: Fed-SmoothAdv. How a round's clients are run is the Executor's
// business. Several runs can be trained side by side, which fills a machine for which one run's
// cohort is too small.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>

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

  /// Of the i-th client in the average.
  double share(size_t i) const {
    return static_cast<double>(images[i].size()) / static_cast<double>(total);
  }
};

/// Round t of a run, as its clients see it. The weights outlive it.
struct Round {
  LocalTask task;
  const Weights& global;
  Cohort cohort;
  int64_t t = 0;
  int64_t run = 0;  // number of the run, among those that are trained together
};

struct RoundResult {
  FixedPointSum sum;
  Telemetry telemetry;  // of the clients that were kept
};

/// What a part of a local step takes, all clients together.
struct PhaseCost {
  double seconds = 0, operations = 0, bytes = 0;
};

/// Runs the clients of rounds: the only seam between the algorithm and how it is executed.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Why such a round cannot be run, naming what is not supported; nothing if it can. train() asks
  /// before the first round: an executor refuses a task or does it, and never does another one.
  virtual std::optional<std::string> unsupported(const Round& /*round*/) const { return {}; }

  /// Each cohort's weighted sum and telemetry. A client draws from streams of its own number and
  /// its run's seed, so the result does not depend on who runs where, nor on the other rounds.
  virtual std::vector<RoundResult> run(const std::vector<Round>& rounds) = 0;

  /// One local step of the round by what it is spent on; empty if the executor cannot tell.
  virtual std::map<std::string, PhaseCost> measure_step(const Round& /*round*/) { return {}; }
};

/// The result of one round.
RoundResult run_round(Executor& executor, const Round& round);

/// One client after another: the oracle for every faster executor, if its passes are the reference.
class SerialExecutor : public Executor {
 public:
  explicit SerialExecutor(MakePasses make) : make_(std::move(make)) {}
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

 private:
  MakePasses make_;
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

/// One run. What is referred to outlives it.
struct Training {
  LocalTask task;
  TrainOptions options;
  const Partition& partition;
  ServerState& state;
  OnRound on_round;
  int64_t number = 0;  // by which an Executor tells it from others
};

/// Each run goes on from its state to its last round, all of them a round at a time. What a run
/// throws, its on_round included, ends that run alone and is returned in its place; null: nothing.
std::vector<std::exception_ptr> train_side_by_side(const std::vector<Training>& runs,
                                                   Executor& executor);

/// Goes on from `state` to the last round. Every client dropped in a round is an Error.
void train(const LocalTask& task, const TrainOptions& options, const Partition& partition,
           Executor& executor, ServerState& state, const OnRound& on_round);

/// The task as it stands in round t: learning rate by the schedule, epsilon by the warm-up.
LocalTask task_in_round(const LocalTask& task, const TrainOptions& options, int64_t t);

/// Refuses what cannot be trained.
void check_train_options(const TrainOptions& options, const AttackOptions& attack,
                         const Partition& partition);

}  // namespace fedsmooth
