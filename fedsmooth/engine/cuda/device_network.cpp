#include "fedsmooth/engine/cuda/device_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/pair_network.h"
#include "fedsmooth/engine/cuda/row_network.h"

namespace fedsmooth {

DeviceNetwork::DeviceNetwork(GpuGraph lowered, MapLayout (*layout_of)(int64_t, int64_t))
    : graph(std::move(lowered)),
      layout(layout_of),
      source(graph.source),
      mean(graph.mean),
      scale(graph.scale),
      positions(graph.positions) {}

bool DeviceNetwork::trains_otherwise() const {
  return std::ranges::any_of(graph.nodes, [](const GraphNode& node) {
    return node.has_batch_norm() || node.has_dropout();
  });
}

FirstMap DeviceNetwork::first_map(int rows) const {
  const MapShape& map = graph.maps[0];
  return {layout(rows, map.pixels()),
          map.pixels(),
          map.channels,
          source.data(),
          mean.data(),
          scale.data()};
}

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
  spread.size = network.graph.size;
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
  if (graph_refusal(network, Family::kPairs).empty()) return {};
  const std::string reason = graph_refusal(network, Family::kRows);
  if (reason.empty()) return {};
  return fmt::format("the GPU engine cannot run network {}: {}", network.name, reason);
}

std::unique_ptr<DeviceNetwork> device_network(const Network& network) {
  if (graph_refusal(network, Family::kPairs).empty()) return std::make_unique<PairNetwork>(network);
  return std::make_unique<RowNetwork>(network);
}

}  // namespace fedsmooth
