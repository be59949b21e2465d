#include "fedsmooth/engine/cuda/residual_device.h"

#include <algorithm>

#include "fedsmooth/engine/cuda/residual_passes.h"

namespace fedsmooth {

ResidualDevice::ResidualDevice(const Network& network) : graph(plan_graph(network)) {
  input = graph.input;
  classes = padded_classes = graph.classes;
  rows_first = true;
  trains_otherwise = std::ranges::any_of(graph.nodes, &GraphNode::has_batch_norm);
  pixels = graph.maps[0].pixels();
  map_channels = graph.maps[0].channels;
  size = graph.size;
  trained = graph.trained;
  std::vector<int16_t> from(int64_t{pixels} * map_channels, -1);
  for (int c = 0; c < input[0]; ++c) {
    for (int p = 0; p < pixels; ++p)
      from[p * map_channels + c] = static_cast<int16_t>(c * pixels + p);
  }
  source = DeviceArray<int16_t>(from);
  mean = DeviceArray<float>(graph.mean);
  scale = DeviceArray<float>(graph.scale_of_image);
  positions = DeviceArray<int>(graph.positions);
  std::vector<KernelPlace> all;
  for (const GraphNode& n : graph.nodes) {
    all.push_back({n.weight, n.taps(), n.in.channels, n.out.channels, n.fixed, n.has_batch_norm(),
                   n.has_bias, n.bias, n.scale, n.mean, n.variance, n.channel});
  }
  places = DeviceArray<KernelPlace>(all);
}

std::unique_ptr<WavePasses> ResidualDevice::make_passes(Precision precision, int clients, int rows,
                                                        bool gradients) const {
  return std::make_unique<ResidualPasses>(*this, precision, clients, rows, gradients);
}

}  // namespace fedsmooth
