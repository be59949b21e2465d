// Noises of all clients that are moved one by one (NoiseAscent), on the GPU. Arithmetic follows
// federated/objectives/cat_rs.cpp and federated/objectives/sun.cpp.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/federated/objectives/scores/noise_ascent.h"

namespace fedsmooth {

/// The gradient of each row's cross entropy with its target, with respect to the logits.
struct TargetLoss {
  const float* logits = nullptr;   // [client, row, padded class]
  const int* y = nullptr;          // [client, batch]
  const float* targets = nullptr;  // [client, steps, batch, class]; null: the labels
  int steps = 0;
  const int* step = nullptr;
  void* out = nullptr;       // [client, row, padded class]
  uint8_t* wrong = nullptr;  // [client, row]: whether the answer is not y
};
cudaError_t take_target_loss(Precision precision, const WaveShape& shape, const TargetLoss& loss,
                             cudaStream_t stream);

/// One step of each noise.
struct NoiseStep {
  NoiseAscent::Kind kind = NoiseAscent::Kind::kTeacher;
  const float* delta = nullptr;  // [client, batch * noises, image]: as drawn
  float* moved = nullptr;        // so far
  const void* map_gradient = nullptr;
  FirstMap map;
  const uint8_t* wrong = nullptr;  // of TargetLoss; such rows stay, if of kind kUntilWrong
  const ClientSettings* settings = nullptr;
};
cudaError_t step_noises(Precision precision, const WaveShape& shape, const NoiseStep& step,
                        cudaStream_t stream);

/// A number in [0, 1) for each image [client, batch], by the keys of `mixing`.
cudaError_t draw_uniforms(const WaveShape& shape, const ClientSettings* settings,
                          const MixSettings* mixing, const int* step, float* out,
                          cudaStream_t stream);

}  // namespace fedsmooth
