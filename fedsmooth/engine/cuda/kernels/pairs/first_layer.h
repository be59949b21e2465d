// The first layer of AlexNet of copies of images, in one kernel on Hopper: the copies need not
// leave the multiprocessor that makes them.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"

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

/// The same for the examples of a wave, each client with weights of its own: to the bit what
/// make_input() and multiply_maps() give, in rows that are left over too; but in those a weight
/// that is not finite does not show.
struct FirstLayerWave {
  WaveShape shape;
  InputMap images;  // its sources are not used; `out` null: the input map is not wanted
  const void* kernel = nullptr;  // bfloat16 [client, 9 taps, 48 channels, 64]
  const float* bias = nullptr;   // [client, 64]
  int64_t weights_client = 0;    // from one client's kernel or bias to the next
  void* out = nullptr;           // bfloat16 [client, 16 squares, row, 64]
  uint8_t* choice = nullptr;     // of the same shape, as in MapProduct; null: not wanted
};

/// Only where has_hopper_kernels().
cudaError_t make_first_layer(const FirstLayerRows& layer, cudaStream_t stream);
cudaError_t make_first_layer(const FirstLayerWave& layer, cudaStream_t stream);

}  // namespace fedsmooth
