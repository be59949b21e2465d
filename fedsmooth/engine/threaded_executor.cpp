#include "fedsmooth/engine/threaded_executor.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "fedsmooth/engine/cpu/lane_network.h"
#include "fedsmooth/engine/reference/reference_passes.h"

namespace fedsmooth {

std::unique_ptr<Passes> fastest_passes(const Network& network) {
  return lanes_refusal(network).empty() ? lane_passes(network) : reference_passes(network);
}

ThreadedExecutor::ThreadedExecutor(int threads, MakePasses make)
    : workers_(threads), make_(make ? std::move(make) : fastest_passes) {}

std::vector<RoundResult> ThreadedExecutor::run(const std::vector<Round>& rounds) {
  std::vector<std::pair<size_t, size_t>> jobs;  // a round and a client of it
  for (size_t r = 0; r < rounds.size(); ++r) {
    const Round& round = rounds[r];
    for (size_t i = 0; i < round.cohort.clients.size(); ++i) jobs.emplace_back(r, i);
  }
  std::vector<RoundResult> results(rounds.size());
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  workers_.run([&](int) {
    std::vector<RoundResult> own(rounds.size());
    const Network* network = nullptr;
    std::unique_ptr<Passes> passes;
    for (size_t job; (job = next.fetch_add(1)) < jobs.size();) {
      const auto [r, i] = jobs[job];
      const Round& round = rounds[r];
      if (network != &round.task.network) {
        network = &round.task.network;
        passes = make_(*network);
      }
      own[r].add(round, i, train_client(round, i, *passes));
    }
    const std::lock_guard lock(mutex);
    for (size_t r = 0; r < rounds.size(); ++r) results[r].add(std::move(own[r]));
  });
  return results;
}

}  // namespace fedsmooth
