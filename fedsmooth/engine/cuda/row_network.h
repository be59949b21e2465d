// A network of family kRows on the GPU.
#pragma once

#include "fedsmooth/engine/cuda/device_network.h"
#include "fedsmooth/engine/cuda/graph.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_weights.h"

namespace fedsmooth {

struct RowNetwork : DeviceNetwork {
  explicit RowNetwork(const Network& network);

  std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                          bool gradients) const override;

  DeviceArray<KernelPlace> places;  // one for each convolution, in the order of nodes
  int blocks = 0;                   // largest preparing_blocks() of `places`
};

}  // namespace fedsmooth
