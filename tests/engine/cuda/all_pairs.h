// Pair lists of whole networks, for tests that need no GPU.
#pragma once

#include "fedsmooth/engine/cuda/pair_lists.h"
#include "tests/engine/networks.h"

namespace fedsmooth {

inline std::vector<NodePairs> all_pairs(const GpuGraph& graph) {
  std::vector<NodePairs> all;
  for (const GraphNode& node : graph.nodes) {
    if (node.op != GraphNode::Op::kNone) all.push_back(product_pairs(node));
    if (node.has_pool()) all.push_back(pool_pairs(node));
  }
  return all;
}

}  // namespace fedsmooth
