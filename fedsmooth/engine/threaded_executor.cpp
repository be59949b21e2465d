#include "fedsmooth/engine/threaded_executor.h"

#include <atomic>
#include <mutex>

#include "fedsmooth/engine/cpu/lane_network.h"

namespace fedsmooth {

bool ThreadedExecutor::uses_lanes(const Network& network) const {
  return !plain_ && LaneNetwork::supports(network);
}

std::vector<RoundResult> ThreadedExecutor::run(const std::vector<Round>& rounds) {
  std::vector<std::pair<size_t, size_t>> jobs;  // a round and a client of it
  std::vector<Weights> starts;
  for (size_t r = 0; r < rounds.size(); ++r) {
    const Round& round = rounds[r];
    const Network& network = round.task.network;
    for (size_t i = 0; i < round.cohort.clients.size(); ++i) jobs.emplace_back(r, i);
    starts.push_back(uses_lanes(network) ? lay_out_for_lanes(network, round.global) : round.global);
  }
  std::vector<RoundResult> results(rounds.size());
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  workers_.run([&](int) {
    std::vector<RoundResult> own(rounds.size());
    const Network* network = nullptr;
    Forward forward;
    for (size_t job; (job = next.fetch_add(1)) < jobs.size();) {
      const auto [r, i] = jobs[job];
      const Round& round = rounds[r];
      const Cohort& cohort = round.cohort;
      if (network != &round.task.network) {
        network = &round.task.network;
        forward = uses_lanes(*network) ? differentiable(std::make_shared<LaneNetwork>(*network))
                                       : plain_forward(*network);
      }
      const Update update =
          local_train(round.task, forward, starts[r], cohort.clients[i], cohort.images[i], round.t);
      if (own[r].sum.add(update.weights, cohort.share(i))) own[r].telemetry.add(update.telemetry);
    }
    const std::lock_guard lock(mutex);
    for (size_t r = 0; r < rounds.size(); ++r) {
      results[r].sum.add(own[r].sum);
      results[r].telemetry.add(own[r].telemetry);
    }
  });
  return results;
}

}  // namespace fedsmooth
