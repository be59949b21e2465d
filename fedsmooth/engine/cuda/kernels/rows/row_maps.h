// Maps of a residual network on the GPU: [client, row, y, x, channel], a row per noisy image.
// Channels are filled up with zeros to 16, 32 or 64, so that a pixel is whole products of the
// tensor cores. Launchers take device pointers and a stream; nothing here allocates.
//
// A result's bits depend on its own client alone: work is cut by the shape of a layer and by the
// client's rows, sums run in one order, and nothing is added atomically.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "fedsmooth/engine/cuda/kernels/wave/client_settings.h"
#include "fedsmooth/engine/cuda/kernels/wave/map_shape.h"

namespace fedsmooth {

/// Equal groups of a map's channels; channels after them fill up.
struct ChannelGroups {
  int count = 0, channels = 0;  // channels of each

  FEDSMOOTH_HOST_DEVICE int real_channels() const { return count * channels; }
};

/// What a batch norm multiplies and adds in a pass, per client and channel.
struct NormValues {
  float mean = 0, inverse = 0;          // 1 / sqrt(variance + epsilon)
  float scale = 0, shift = 0;           // y = scale x + shift
  float mean_dy = 0, mean_product = 0;  // of dy and of dy (x - mean) inverse, for the gradient
};

}  // namespace fedsmooth
