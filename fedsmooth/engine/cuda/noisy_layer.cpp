#include "fedsmooth/engine/cuda/noisy_layer.h"

#include <algorithm>

namespace fedsmooth {
namespace {

constexpr MapShape kIn = {10, 10, 48}, kOut = {8, 8, 64};

}  // namespace

bool has_noisy_layer(const PairNetwork& device, Precision precision) {
  const GraphNode& first = device.graph.nodes.front();
  return device.graph.input == Shape{3, 32, 32} && device.fuses_pool(0, precision) &&
         first.in == kIn && first.map == kOut && first.block == 4 && first.taps() == 9 &&
         first.padding == 5 && first.has_bias && first.relu;
}

FirstLayerRows noisy_layer(const DeviceModel& model) {
  const GpuGraph& graph = model.network().graph;
  const StackedWeights weights = model.weights();
  const GraphNode& first = graph.nodes.front();
  FirstLayerRows layer;
  std::copy_n(graph.mean.begin(), 3, layer.mean);
  std::copy_n(graph.scale.begin(), 3, layer.scale);
  layer.kernel = static_cast<const char*>(weights.working) + first.weight * 2;
  layer.bias = weights.weights + first.bias;
  return layer;
}

}  // namespace fedsmooth
