// A residual network's tables on the GPU.
#pragma once

#include "fedsmooth/engine/cuda/device_network.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_weights.h"
#include "fedsmooth/engine/cuda/residual_graph.h"

namespace fedsmooth {

struct ResidualDevice : DeviceNetwork {
  explicit ResidualDevice(const Network& network);

  std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                          bool gradients) const override;

  ResidualGraph graph;
  DeviceArray<KernelPlace> places;
};

}  // namespace fedsmooth
