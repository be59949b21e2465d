// What the GPU holds whatever the clients: a network's tables and the data.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/engine/cuda/device_network.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/pair_lists.h"
#include "fedsmooth/federated/client.h"

namespace fedsmooth {

/// Pair lists on the device.
class PairTable {
 public:
  /// `order` of the results says which to compute together.
  PairTable(const PairLists& lists, const std::vector<int>& order, const Tiling& tiling);

  const DevicePairs& view() const { return view_; }

 private:
  DeviceArray<int> first_, order_, chunk_first_, items_, item_first_, lefts_, place_first_,
      step_first_;
  DeviceArray<int2> pairs_, places_, steps_;
  DevicePairs view_;
};

/// The tables of a node's operation and of its maxima, where it has them.
struct NodeTables {
  int pairs = 0;  // of the operation
  std::optional<PairTable> by_output, by_input, by_tap;
  std::optional<PairTable> windows, windows_of;  // by pixels after the maxima, and before them
};

/// A network of family kPairs on the GPU.
struct PairNetwork : DeviceNetwork {
  explicit PairNetwork(const Network& network);

  std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                          bool gradients) const override;

  /// Whether one kernel computes the operation of node i and its maxima. The gradient of such
  /// maxima is spread by the operation of the next node.
  bool fuses_pool(size_t i, Precision precision) const;

  std::vector<NodeTables> tables;  // of each node
  DeviceArray<uint8_t> real;       // whether a position of a client's vector is that of a weight
};

struct DeviceData {
  explicit DeviceData(const Dataset& data);

  Array host;  // the images from which these were copied
  DeviceArray<uint8_t> images;
  DeviceArray<int64_t> labels;
};

}  // namespace fedsmooth
