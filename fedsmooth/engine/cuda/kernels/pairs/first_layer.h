// The first layer of AlexNet in one kernel on Hopper together with making the copies of images that
// it reads, so that the copies need not leave the multiprocessor that makes them.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"

namespace fedsmooth {

/// Arguments of make_first_layer() for votes. Pointers are to device memory.
struct FirstLayerRows {
  NoisyRows rows;  // without exact noise; `map` and `out` are not read
  float mean[3] = {}, scale[3] = {};
  const void* kernel = nullptr;  // bfloat16 [9 taps, 48 channels, 64]
  const float* bias = nullptr;   // [64]
  void* out = nullptr;           // bfloat16 [16 squares, row, 64]
};

/// Arguments of make_first_layer() for training, each client with weights of its own. Pointers are
/// to device memory.
struct FirstLayerWave {
  WaveShape shape;
  InputMap images;               // map.source is not read; `out` null: the input map is not wanted
  const void* kernel = nullptr;  // bfloat16 [client, 9 taps, 48 channels, 64]
  const float* bias = nullptr;   // [client, 64]
  int64_t weights_client = 0;    // stride from one client's kernel or bias to the next
  void* out = nullptr;           // bfloat16 [client, 16 squares, row, 64]
  uint8_t* choice = nullptr;     // in the shape of `out`, see MapProduct; null: not wanted
};

/// Computes, from noisy copies of images [3, 32, 32], the normalised copies in blocks of 4x4 pixels
/// that begin five pixels before the image, 3x3 of these blocks with `kernel` and `bias`, ReLU, and
/// the maxima of 2x2 pixels. The bits are those of make_noisy_input() and multiply_maps() in
/// bfloat16. Unused rows are left as they are. Requires has_hopper_kernels().
cudaError_t make_first_layer(const FirstLayerRows& layer, cudaStream_t stream);
/// Computes the same layer for the examples of a wave. The bits are those of make_input() and
/// multiply_maps(), also in rows without an example, except that there a weight that is not finite
/// has no effect. Requires has_hopper_kernels().
cudaError_t make_first_layer(const FirstLayerWave& layer, cudaStream_t stream);

}  // namespace fedsmooth
