// The ascent that moves every noise of a wave's clients (NoiseAscent), on the GPU. Arithmetic
// follows federated/objectives/cat_rs.cpp and federated/objectives/sun.cpp. Functions enqueue
// kernels on the stream and return the launch's status; pointers are to device memory.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/federated/objectives/scores/noise_ascent.h"

namespace fedsmooth {

/// Arguments of take_target_loss().
struct TargetLoss {
  const float* logits = nullptr;   // [client, row, padded class]
  const int* y = nullptr;          // [client, batch]
  const float* targets = nullptr;  // [client, steps, batch, class]; null: the labels
  int steps = 0;
  const int* step = nullptr;  // number of the current step
  void* out = nullptr;        // [client, row, padded class], in `precision`
  uint8_t* wrong = nullptr;   // [client, row]: 1 if the answer is not y
};
/// Writes to `out` the gradient of each row's cross entropy with its target with respect to the
/// logits, and to `wrong` which rows are answered wrongly.
cudaError_t take_target_loss(Precision precision, const WaveShape& shape, const TargetLoss& loss,
                             cudaStream_t stream);

/// Arguments of step_noises().
struct NoiseStep {
  NoiseAscent::Kind kind = NoiseAscent::Kind::kTeacher;
  const float* delta = nullptr;        // [client, batch * noises, image]: noises as drawn
  float* moved = nullptr;              // in the same shape: noises so far
  const void* map_gradient = nullptr;  // gradient of the first map, in `precision`
  FirstMap map;
  const uint8_t* wrong = nullptr;  // see TargetLoss; such rows are not moved under kUntilWrong
  const ClientSettings* settings = nullptr;
};
/// Moves each noise one step up the gradient, and back to the set that `kind` allows.
cudaError_t step_noises(Precision precision, const WaveShape& shape, const NoiseStep& step,
                        cudaStream_t stream);

/// Writes a number in [0, 1) for each image to `out` [client, batch], drawn by the keys of
/// `mixing`.
cudaError_t draw_uniforms(const WaveShape& shape, const ClientSettings* settings,
                          const MixSettings* mixing, const int* step, float* out,
                          cudaStream_t stream);

}  // namespace fedsmooth
