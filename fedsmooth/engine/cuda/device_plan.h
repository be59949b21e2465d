// What the GPU holds whatever the clients: a network's tables and the data.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/batched_plan.h"
#include "fedsmooth/engine/cuda/device_network.h"
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

/// The tables of a BatchedPlan.
struct DevicePlan : DeviceNetwork {
  explicit DevicePlan(const Network& network);

  std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                          bool gradients) const override;

  BatchedPlan plan;
  std::vector<PairTable> by_output, by_input, by_tap;
  DeviceArray<uint8_t> real;
};

struct DeviceData {
  explicit DeviceData(const Dataset& data);

  Array host;  // the images from which these were copied
  DeviceArray<uint8_t> images;
  DeviceArray<int64_t> labels;
};

}  // namespace fedsmooth
