#include "fedsmooth/engine/cuda/device_network.h"

#include <fmt/format.h>

#include "fedsmooth/engine/cuda/device_plan.h"
#include "fedsmooth/engine/cuda/residual_device.h"

namespace fedsmooth {

std::string training_refusal(const Network& network) {
  if (BatchedPlan::supports(network)) return {};
  const std::string reason = graph_refusal(network);
  if (reason.empty()) return {};
  return fmt::format("the GPU engine cannot train network {}: {}", network.name, reason);
}

std::unique_ptr<DeviceNetwork> device_network(const Network& network) {
  if (BatchedPlan::supports(network)) return std::make_unique<DevicePlan>(network);
  return std::make_unique<ResidualDevice>(network);
}

}  // namespace fedsmooth
