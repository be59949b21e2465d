#include "fedsmooth/engine/cuda/device_network.h"

#include <fmt/format.h>

#include "fedsmooth/engine/cuda/device_plan.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/residual_device.h"

namespace fedsmooth {

void WavePasses::run_images(Precision precision, const WaveShape& shape, const InputMap& images,
                            const StackedWeights& weights, PassMode mode, Launches& launches) {
  launches.add("images", make_input(precision, shape, images, launches.stream()));
  run(weights, mode, launches);
}

void spread_weights(const DeviceNetwork& network, const DeviceArray<float>& values,
                    const DeviceArray<float>& vector, const ClientVectors& to,
                    cudaStream_t stream) {
  WeightSpread spread;
  spread.clients = to.clients;
  spread.size = network.size;
  spread.count = values.size();
  spread.values = values.data();
  spread.positions = network.positions.data();
  spread.vector = vector.data();
  spread.weights = to.weights;
  spread.velocity = to.velocity;
  spread.working = to.working;
  spread.global = to.global;
  check_cuda(spread_weights(spread, stream), "spread_weights");
}

std::string network_refusal(const Network& network) {
  if (BatchedPlan::supports(network)) return {};
  const std::string reason = graph_refusal(network);
  if (reason.empty()) return {};
  return fmt::format("the GPU engine cannot run network {}: {}", network.name, reason);
}

std::unique_ptr<DeviceNetwork> device_network(const Network& network) {
  if (BatchedPlan::supports(network)) return std::make_unique<DevicePlan>(network);
  return std::make_unique<ResidualDevice>(network);
}

}  // namespace fedsmooth
