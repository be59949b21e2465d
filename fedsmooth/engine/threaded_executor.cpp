#include "fedsmooth/engine/threaded_executor.h"

#include <atomic>
#include <mutex>

#include "fedsmooth/engine/lane_network.h"

namespace fedsmooth {

RoundResult ThreadedExecutor::run(const LocalTask& task, const Weights& global,
                                  const Cohort& cohort, int64_t t) {
  RoundResult result;
  // Added up in the cohort's order below: doubles, unlike the fixed-point sums, depend on it.
  std::vector<Telemetry> telemetry(cohort.clients.size());
  const bool lanes = !plain_ && LaneNetwork::supports(task.network);
  const Weights start = lanes ? lay_out_for_lanes(task.network, global) : global;
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  workers_.run([&](int) {
    const Forward forward = lanes ? differentiable(std::make_shared<LaneNetwork>(task.network))
                                  : plain_forward(task.network);
    FixedPointSum sum;
    for (size_t i; (i = next.fetch_add(1)) < cohort.clients.size();) {
      Update update = local_train(task, forward, start, cohort.clients[i], cohort.images[i], t);
      const auto held = static_cast<double>(cohort.images[i].size());
      const bool kept = sum.add(update.weights, held / static_cast<double>(cohort.total));
      if (kept) telemetry[i] = update.telemetry;
    }
    const std::lock_guard lock(mutex);
    result.sum.add(sum);
  });
  for (const Telemetry& one : telemetry) result.telemetry.add(one);
  return result;
}

}  // namespace fedsmooth
