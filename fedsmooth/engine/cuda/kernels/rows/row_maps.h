// Row maps, the maps of networks of family kRows (graph.h): [client, row, y, x, channel], with one
// row per noisy image. Channels are filled up with zeros to 16, 32, 64 or a multiple of 32 up to
// 2048, as the tensor cores need. Functions in this folder enqueue kernels on a stream and return
// the launch's status. Pointers are to device memory, and nothing allocates.
//
// The bits of a client's results depend on no other client: work is cut by the shape of a layer and
// by the client's number of rows, sums are in a fixed order, and nothing is added atomically.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "fedsmooth/engine/cuda/kernels/wave/client_settings.h"
#include "fedsmooth/engine/cuda/kernels/wave/map_shape.h"

namespace fedsmooth {

/// Groups of a map's channels, of equal size. The channels after the last group only fill up.
struct ChannelGroups {
  int count = 0, channels = 0;  // number of groups; channels in each

  FEDSMOOTH_HOST_DEVICE int real_channels() const { return count * channels; }
};

/// The numbers that a batch norm uses in a pass, for one client and channel.
struct NormValues {
  float mean = 0, inverse = 0;          // 1 / sqrt(variance + epsilon)
  float scale = 0, shift = 0;           // y = scale x + shift
  float mean_dy = 0, mean_product = 0;  // means of dy and of dy (x - mean) inverse
};

}  // namespace fedsmooth
