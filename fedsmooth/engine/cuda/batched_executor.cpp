#include "fedsmooth/engine/cuda/batched_executor.h"

#include <algorithm>
#include <mutex>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/group.h"
#include "fedsmooth/engine/cuda/wave.h"
#include "fedsmooth/engine/reference/reference_passes.h"

namespace fedsmooth {
namespace {

bool share_waves(const LocalTask& a, const LocalTask& b) {
  return &a.network == &b.network && a.data.images.data() == b.data.images.data() &&
         step_of(a) == step_of(b);
}

// Returns whether wave_step.cpp and batched_scores.cu have a case for an objective's GPU form.
bool knows(const BatchedForm& form) {
  switch (form.examples) {
    case BatchedExamples::kNoisy:
    case BatchedExamples::kAndClean:
    case BatchedExamples::kMixed:
    case BatchedExamples::kMoved:
      switch (form.score) {
        case ScoreKind::kCrossEntropy:
        case ScoreKind::kConsistency:
        case ScoreKind::kStability:
        case ScoreKind::kMacer:
        case ScoreKind::kSmoothMix:
        case ScoreKind::kCatRs:
          return true;
      }
  }
  return false;
}

// Returns whether wave_step.cpp computes a task's objective. It moves an image by the attack or
// mixes it, not both.
bool knows(const LocalTask& task) {
  const std::optional<BatchedForm>& form = objective_of(task.method).batched;
  return form && knows(*form) && !(form->examples == BatchedExamples::kMixed && uses_attack(task));
}

constexpr int64_t kMostClients = 65'535;  // the largest y and z of a grid, which count clients

// Runs on the CPU: the comparison serves to understand a run, so its speed does not matter.
void compare_on_cpu(const Round& round, Telemetry& telemetry) {
  const std::unique_ptr<Passes> passes = reference_passes(round.task.network);
  for (size_t i = 0; i < round.cohort.clients.size(); ++i) {
    compare_gradients(round.task, *passes, round.global, round.cohort.clients[i],
                      round.cohort.images[i], round.t, telemetry);
  }
}

}  // namespace

struct BatchedExecutor::State {
  Precision precision;
  int64_t most_clients;
  const Network* network = nullptr;
  std::unique_ptr<DeviceNetwork> plan;
  std::unique_ptr<DeviceData> data;
  std::unique_ptr<Wave> wave;

  // Returns the number of clients in a wave: as many as fit into half of the free memory, because
  // another training may run at the same time, but so that all waves have nearly the same size.
  int64_t wave_size(const LocalTask& task, int64_t cohort) const {
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    const int64_t one = Wave::bytes(task, *plan, *data, precision, 1);
    const int64_t each = Wave::bytes(task, *plan, *data, precision, 2) - one;
    int64_t most = (static_cast<int64_t>(free / 2) - one) / each + 1;
    if (most_clients > 0) most = std::min(most, most_clients);
    most = std::clamp<int64_t>(most, 1, std::min(cohort, kMostClients));
    const int64_t waves = (cohort + most - 1) / most;
    return (cohort + waves - 1) / waves;
  }

  void prepare(const LocalTask& task, int64_t cohort) {
    check(knows(task), "BatchedExecutor: an unsupported task");
    if (!plan) {
      plan = device_network(task.network);
      network = &task.network;
    }
    check(network == &task.network, "BatchedExecutor: made for another network");
    if (!data || data->host.data() != task.data.images.data()) {
      wave.reset();
      data = std::make_unique<DeviceData>(task.data);
    }
    if (wave && wave->fits(task) && wave->clients() <= cohort) return;
    wave.reset();
    static std::mutex one_at_a_time;  // otherwise two trainings could count on the same memory
    const std::lock_guard lock(one_at_a_time);
    for (int64_t clients = wave_size(task, cohort);; clients = (clients + 1) / 2) {
      try {
        wave = std::make_unique<Wave>(task, *plan, *data, precision, static_cast<int>(clients));
        return;
      } catch (const OutOfDeviceMemory&) {
        if (clients == 1) throw;
      }
    }
  }

  // Fills waves with the clients of all rounds, one round after another.
  void run(const std::vector<Round>& rounds, const Indices& together,
           std::vector<RoundResult>& results) {
    size_t clients = 0;
    for (const size_t i : together) clients += rounds[i].cohort.clients.size();
    prepare(rounds[together.front()].task, static_cast<int64_t>(clients));
    const auto room = static_cast<size_t>(wave->clients());
    std::vector<WavePart> parts;
    size_t taken = 0;
    for (const size_t i : together) {
      const size_t all = rounds[i].cohort.clients.size();
      for (size_t first = 0, count; first < all; first += count) {
        count = std::min(room - taken, all - first);
        parts.push_back({rounds[i], first, count, results[i]});
        taken += count;
        if (taken < room) continue;
        wave->run(parts);
        parts.clear();
        taken = 0;
      }
    }
    if (!parts.empty()) wave->run(parts);
  }
};

BatchedExecutor::BatchedExecutor(Precision precision, int64_t wave)
    : state_(new State{precision, wave}) {}

BatchedExecutor::~BatchedExecutor() = default;

std::optional<std::string> BatchedExecutor::unsupported(const Round& round) const {
  const Network& network = round.task.network;
  if (const std::string reason = network_refusal(network); !reason.empty()) {
    return fmt::format("{}; use --device=cpu", reason);
  }
  if (knows(round.task)) return {};
  return fmt::format("train.method={:?}: the GPU engine does not have it; use --device=cpu",
                     objective_of(round.task.method).name);
}

std::vector<RoundResult> BatchedExecutor::run(const std::vector<Round>& rounds) {
  std::vector<RoundResult> results(rounds.size());
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (rounds[i].task.attack.measure_cosine) compare_on_cpu(rounds[i], results[i].telemetry);
  }
  const auto same = [&](size_t a, size_t b) { return share_waves(rounds[a].task, rounds[b].task); };
  for (const Indices& together : group_indices(rounds.size(), same)) {
    state_->run(rounds, together, results);
  }
  return results;
}

std::map<std::string, PhaseCost> BatchedExecutor::measure_step(const Round& round) {
  const size_t clients = round.cohort.clients.size();
  state_->prepare(round.task, static_cast<int64_t>(clients));
  Wave& wave = *state_->wave;
  RoundResult unused;
  return wave.measure_step(
      {{round, 0, std::min(clients, static_cast<size_t>(wave.clients())), unused}});
}

}  // namespace fedsmooth
