// Who runs a round's clients: the only seam between Algorithm 1 and how it is executed. A round
// goes in; the cohort's weights come out as one sum or, where a reduction needs them, one by one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/federated/aggregate.h"
#include "fedsmooth/federated/client.h"

namespace fedsmooth {

/// The clients of a round, and how many images they hold together.
struct Cohort {
  std::vector<int64_t> clients;
  std::vector<std::vector<int64_t>> images;  // of each
  int64_t total = 0;

  /// The i-th client's weight in the average.
  double share(size_t i) const {
    return static_cast<double>(images[i].size()) / static_cast<double>(total);
  }
};

/// What an executor returns of a cohort's weights.
enum class Gather {
  kSum,   // their weighted sum; memory does not grow with the cohort
  kEach,  // every client's
};

/// Round t of a run, as its clients see it. The momentum outlives it.
struct Round {
  LocalTask task;
  Weights global;  // that clients start from
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
  double share = 0;  // in the average: n_k / n
  Weights weights;
  double loss = 0;        // mean over the client's steps
  Weights velocity = {};  // of a continuous task
};

struct DroppedClient {
  int64_t client = 0;
  std::string why;  // names the tensor, see out_of_bounds()
};

/// What became of the clients of a round. Clients whose weights are out of the round's bounds are
/// dropped: nothing else of them is left.
struct RoundResult {
  FixedPointSum sum;                 // of Gather::kSum
  std::vector<ClientWeights> each;   // of Gather::kEach, in any order
  Telemetry telemetry;               // of the clients that were kept
  int64_t dropped = 0;               // clients
  std::vector<DroppedClient> named;  // of these, but for those of nodes, which only count them
  bool is_given_up = false;          // all are dropped, and the weights stay

  /// The update of the round's i-th client.
  void add(const Round& round, size_t i, Update update);
  /// What became of other clients of the same round.
  void add(RoundResult other);
  void drop(int64_t client, std::string why);
  /// Drops those of `each` that are out of bounds.
  void drop_beyond(ValueBounds bounds, const std::vector<Parameter>& known);
  bool nothing_kept() const { return sum.share() == 0 && each.empty(); }
};

/// What a part of a local step takes, all clients together.
struct PhaseCost {
  double seconds = 0, operations = 0, bytes = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Why such a round cannot be run, naming what is not supported; nothing if it can. train() asks
  /// before the first round: an executor refuses a task or does it, and never does another one. One
  /// that does not say otherwise supports Gather::kSum.
  virtual std::optional<std::string> unsupported(const Round& round) const;

  /// What each cohort gave. A client draws from streams of its own number and its run's seed, so
  /// the result does not depend on who runs where, nor on the other rounds.
  virtual std::vector<RoundResult> run(const std::vector<Round>& rounds) = 0;

  /// One local step of the round by what it is spent on; empty if the executor cannot measure it.
  virtual std::map<std::string, PhaseCost> measure_step(const Round& /*round*/) { return {}; }
};

/// Why train_client() cannot run such a round; nothing if it can.
std::optional<std::string> unsupported_on_cpu(const Round& round);

/// LocalTrain of the round's i-th client.
Update train_client(const Round& round, size_t i, Passes& passes);

/// The result of one round.
RoundResult run_round(Executor& executor, const Round& round);

/// One client after another: the oracle for every faster executor, if its passes are the reference.
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
