// The order of a client's weights in one vector on the GPU, see graph.h.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fedsmooth/engine/cuda/graph.h"

namespace fedsmooth {

/// The regions of a client's vector, in their order. kKernels has the trained kernels, except those
/// of wide nodes (kWide) and of the linear layer at the end in family kRows (kTrained).
enum class Region { kKernels, kFixed, kWide, kTrained, kStatistics };

/// Returns the region of a node's kernel.
Region region_of_kernel(const GraphNode& node, Family family);

/// Places tensors in the regions of a client's vector. Offsets are relative to their region until
/// finish() knows where each begins.
class ClientVector {
 public:
  /// Reserves `count` values at the end of a region and returns the first one's offset.
  int64_t take(Region region, int64_t count);
  /// Places the next weight, in the order of parameters().
  void place(Region region, int64_t offset);
  /// Reserves `all` values, places the first `real` ones and returns the first one's offset.
  int64_t add_vector(Region region, int64_t real, int all);
  /// Sets the graph's sizes and positions, and adds to the nodes' offsets where their regions
  /// begin. Throws a Refusal if there are too many weights.
  void finish(GpuGraph& graph, Family family);

 private:
  static constexpr int kRegions = 5;

  std::array<int64_t, kRegions> ends_ = {};
  std::vector<Region> regions_;   // of each weight
  std::vector<int64_t> offsets_;  // of each weight
};

}  // namespace fedsmooth
