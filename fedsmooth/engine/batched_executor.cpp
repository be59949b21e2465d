#include "fedsmooth/engine/batched_executor.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/wave.h"

namespace fedsmooth {

struct BatchedExecutor::State {
  Precision precision;
  int64_t most_clients;
  const Network* network = nullptr;
  std::unique_ptr<DevicePlan> plan;
  std::unique_ptr<DeviceData> data;
  std::unique_ptr<Wave> wave;

  // As many clients as fit, in waves of equal size.
  int64_t wave_size(const LocalTask& task, int64_t cohort) const {
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    const int64_t each = Wave::bytes_per_client(task, plan->plan, precision);
    int64_t most = static_cast<int64_t>(0.9 * static_cast<double>(free)) / each;
    if (most_clients > 0) most = std::min(most, most_clients);
    most = std::clamp<int64_t>(most, 1, cohort);
    const int64_t waves = (cohort + most - 1) / most;
    return (cohort + waves - 1) / waves;
  }

  void prepare(const LocalTask& task, int64_t cohort) {
    if (!plan) {
      plan = std::make_unique<DevicePlan>(task.network);
      network = &task.network;
    }
    TORCH_CHECK(network == &task.network, "BatchedExecutor: made for another network");
    if (!data || !data->host.is_same(task.data.images)) {
      wave.reset();
      data = std::make_unique<DeviceData>(task.data);
    }
    if (wave && wave->fits(task) && wave->clients() <= cohort) return;
    wave.reset();
    for (int64_t clients = wave_size(task, cohort);; clients = (clients + 1) / 2) {
      try {
        wave = std::make_unique<Wave>(task, *plan, *data, precision, static_cast<int>(clients));
        return;
      } catch (const OutOfDeviceMemory&) {
        if (clients == 1) throw;
      }
    }
  }
};

BatchedExecutor::BatchedExecutor(Precision precision, int64_t wave)
    : state_(new State{precision, wave}) {}

BatchedExecutor::~BatchedExecutor() = default;

RoundResult BatchedExecutor::run(const LocalTask& task, const Weights& global, const Cohort& cohort,
                                 int64_t t) {
  const auto clients = static_cast<int64_t>(cohort.clients.size());
  RoundResult result;
  // On the CPU: a comparison that is asked for to understand a run, not to make one.
  const Forward forward = plain_forward(task.network);
  for (int64_t i = 0; i < clients; ++i) {
    compare_gradients(task, forward, global, cohort.clients[i], cohort.images[i], t,
                      result.telemetry);
  }
  try {
    state_->prepare(task, clients);
    for (int64_t first = 0; first < clients; first += state_->wave->clients()) {
      const int64_t count = std::min<int64_t>(state_->wave->clients(), clients - first);
      state_->wave->run(task, global, cohort, first, count, t, result);
    }
  } catch (const OutOfDeviceMemory&) {
    throw Error("the GPU has too little free memory for the data and one client; use --device=cpu");
  }
  return result;
}

}  // namespace fedsmooth
