#include "fedsmooth/engine/cuda/row_network.h"

#include "fedsmooth/engine/cuda/row_passes.h"

namespace fedsmooth {

RowNetwork::RowNetwork(const Network& network)
    : DeviceNetwork(make_graph(network, Family::kRows), MapLayout::rows_first) {
  std::vector<KernelPlace> all;
  for (const GraphNode& n : graph.nodes) {
    if (n.op == GraphNode::Op::kLinear) continue;
    all.push_back({n.weight, n.taps(), n.in.channels, n.out.channels, n.fixed, n.has_batch_norm(),
                   n.has_bias, n.bias, n.scale, n.mean, n.variance, n.channel});
  }
  places = DeviceArray<KernelPlace>(all);
}

std::unique_ptr<WavePasses> RowNetwork::make_passes(Precision precision, int clients, int rows,
                                                    bool gradients) const {
  return std::make_unique<RowPasses>(*this, precision, clients, rows, gradients);
}

}  // namespace fedsmooth
