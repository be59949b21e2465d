// The seam between Algorithm 1 and its execution: an executor runs a round's clients and returns
// the cohort's weights, as one sum or, where a reduction needs them, one by one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/base/phase_cost.h"
#include "fedsmooth/federated/aggregate.h"
#include "fedsmooth/federated/client.h"

namespace fedsmooth {

/// The clients of a round, and how many images they hold together.
struct Cohort {
  std::vector<int64_t> clients;
  std::vector<std::vector<int64_t>> images;  // of each client
  int64_t total = 0;                         // images of all clients

  /// Returns the i-th client's weight in the average.
  double share(size_t i) const {
    return static_cast<double>(images[i].size()) / static_cast<double>(total);
  }
};

/// The form in which an executor returns a cohort's weights.
enum class Gather {
  kSum,   // their weighted sum; memory does not grow with the cohort
  kEach,  // every client's
};

/// Round t of a run, as its clients see it. The momentum must outlive it.
struct Round {
  LocalTask task;
  Weights global;  // weights that clients start from
  Cohort cohort;
  int64_t t = 0;
  int64_t run = 0;  // number of the run, among those that are trained together
  Gather gather = Gather::kSum;
  const Weights* velocity = nullptr;  // momentum of a continuous task's client; null: none yet

  /// Returns the bounds of the weights that its clients may return. The one client of a continuous
  /// task is not averaged, so its weights need only be finite.
  ValueBounds bounds() const { return task.continuous ? kFinite : kAveraged; }
};

struct ClientWeights {
  int64_t client = 0;
  double share = 0;  // n_k / n, its weight in the average
  Weights weights;
  double loss = 0;        // mean over the client's steps
  Weights velocity = {};  // momentum of a continuous task
};

struct DroppedClient {
  int64_t client = 0;
  std::string why;  // names the tensor, see out_of_bounds()
};

/// The results of the clients of a round. A client whose weights are out of the round's bounds is
/// dropped: its weights and its telemetry are left out.
struct RoundResult {
  FixedPointSum sum;                 // with Gather::kSum
  std::vector<ClientWeights> each;   // with Gather::kEach, in any order
  Telemetry telemetry;               // of the clients that were kept
  int64_t dropped = 0;               // number of dropped clients
  std::vector<DroppedClient> named;  // dropped clients and why; nodes report only a number
  bool is_given_up = false;          // all are dropped, and the weights stay

  /// Adds the update of the round's i-th client, or drops the client.
  void add(const Round& round, size_t i, Update update);
  /// Adds the results of other clients of the round.
  void add(RoundResult other);
  void drop(int64_t client, std::string why);
  /// Drops the clients of `each` whose weights are out of bounds.
  void drop_beyond(ValueBounds bounds, const std::vector<Parameter>& known);
  bool nothing_kept() const { return sum.share() == 0 && each.empty(); }
};

/// Runs clients. An executor serves one thread at a time.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Returns what of this round the executor does not support; nothing if it supports all of it.
  /// train() calls it before the first round: an executor runs a task as it is or refuses it. By
  /// default Gather::kEach is unsupported.
  virtual std::optional<std::string> unsupported(const Round& round) const;

  /// Runs the rounds and returns the result of each. A client draws from streams of its own number
  /// and its run's seed, so results depend neither on where clients run nor on the other rounds.
  virtual std::vector<RoundResult> run(const std::vector<Round>& rounds) = 0;

  /// Measures the parts of one local step of the round, for all clients together; empty if the
  /// executor cannot.
  virtual std::map<std::string, PhaseCost> measure_step(const Round& /*round*/) { return {}; }
};

/// Returns why train_client() cannot run this round; nothing if it can.
std::optional<std::string> unsupported_on_cpu(const Round& round);

/// Runs LocalTrain for the round's i-th client.
Update train_client(const Round& round, size_t i, Passes& passes);

/// Runs one round and returns its result.
RoundResult run_round(Executor& executor, const Round& round);

/// Runs one client after another. With the reference passes it is the oracle for faster executors.
class SerialExecutor : public Executor {
 public:
  explicit SerialExecutor(MakePasses make) : make_(std::move(make)) {}
  std::optional<std::string> unsupported(const Round& round) const override {
    return unsupported_on_cpu(round);
  }
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

 private:
  MakePasses make_;
};

}  // namespace fedsmooth
