// The first layer of AlexNet of noisy copies, in one kernel on Hopper: the copies never leave the
// multiprocessor that draws them.
#pragma once

#include "fedsmooth/engine/cuda/kernels/batched_votes.h"

namespace fedsmooth {

/// Copies of images [3, 32, 32], normalised, in blocks of 4x4 pixels that begin five pixels before
/// the image; 3x3 of these blocks with `kernel` and `bias`, ReLU, and the maxima of 2x2 pixels: to
/// the bit what make_noisy_input() and multiply_maps() give in bfloat16. Rows without a copy are
/// left as they are.
struct FirstLayerRows {
  NoisyRows rows;  // without exact noise; `map` is not used
  float mean[3] = {}, scale[3] = {};
  const void* kernel = nullptr;  // bfloat16 [9 taps, 48 channels, 64]
  const float* bias = nullptr;   // [64]
  void* out = nullptr;           // bfloat16 [16 squares, row, 64]
};

/// Only where multiply_maps() has tilings for Hopper.
cudaError_t make_first_layer(const FirstLayerRows& layer, cudaStream_t stream);

}  // namespace fedsmooth
