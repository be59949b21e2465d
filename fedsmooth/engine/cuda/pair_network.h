// A network of family kPairs on the GPU, with its tables of pairs, and a data set there. Neither
// depends on clients.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/engine/cuda/device_network.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/pair_lists.h"
#include "fedsmooth/federated/client.h"

namespace fedsmooth {

/// Owns pair lists on the device.
class PairTable {
 public:
  /// Uploads the lists on the default stream. Neighbours in `order` are computed together.
  PairTable(const PairLists& lists, const std::vector<int>& order, const Tiling& tiling);

  /// Returns the lists for kernels. The pointers are valid as long as this object.
  const DevicePairs& view() const { return view_; }

 private:
  DeviceArray<int> first_, order_, chunk_first_, items_, item_first_, lefts_, place_first_,
      step_first_;
  DeviceArray<int2> pairs_, places_, steps_;
  DevicePairs view_;
};

/// The tables of a node's operation and of its maxima, if it has them.
struct NodeTables {
  int pairs = 0;                                         // number of pairs of the operation
  std::optional<PairTable> by_output, by_input, by_tap;  // of the operation, see NodePairs
  std::optional<PairTable> windows, windows_of;  // of the maxima, by pixels after and before them
};

/// A network of family kPairs on the GPU.
struct PairNetwork : DeviceNetwork {
  explicit PairNetwork(const Network& network);

  std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                          bool gradients) const override;

  /// Returns whether one kernel computes the operation of node i and its maxima. Then the next
  /// node's input gradient is written as the gradient of the map before the maxima.
  bool fuses_pool(size_t i, Precision precision) const;

  std::vector<NodeTables> tables;  // of each node
  DeviceArray<uint8_t> real;       // [GpuGraph::size]: 1 if the position is that of a weight
};

/// A data set on the GPU.
struct DeviceData {
  /// Copies the data set to the current GPU, and waits.
  explicit DeviceData(const Dataset& data);

  Array host;  // shares the host's images, and so identifies the data set
  DeviceArray<uint8_t> images;
  DeviceArray<int64_t> labels;
};

}  // namespace fedsmooth
