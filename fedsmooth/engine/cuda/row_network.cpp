#include "fedsmooth/engine/cuda/row_network.h"

#include <algorithm>

#include "fedsmooth/engine/cuda/row_passes.h"

namespace fedsmooth {

RowNetwork::RowNetwork(const Network& network)
    : DeviceNetwork(make_graph(network, Family::kRows), MapLayout::rows_first) {
  std::vector<KernelPlace> all;
  for (const GraphNode& n : graph.nodes) {
    if (!n.convolves()) continue;
    KernelPlace place;
    place.weight = n.weight;
    place.taps = n.taps();
    place.in_channels = n.in.channels;
    place.out_channels = n.out.channels;
    place.fixed = n.fixed;
    place.has_norm = n.has_batch_norm();
    place.has_bias = n.has_bias;
    place.bias = n.bias;
    place.norm_bias = n.norm_bias;
    place.scale = n.scale;
    place.mean = n.mean;
    place.variance = n.variance;
    place.channel = n.channel;
    blocks = std::max(blocks, preparing_blocks(place));
    all.push_back(place);
  }
  places = DeviceArray<KernelPlace>(all);
}

std::unique_ptr<WavePasses> RowNetwork::make_passes(Precision precision, int clients, int rows,
                                                    bool gradients) const {
  return std::make_unique<RowPasses>(*this, precision, clients, rows, gradients);
}

}  // namespace fedsmooth
