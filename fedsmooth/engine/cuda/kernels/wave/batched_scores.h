// The scores of federated/objectives on the GPU: from the logits of all clients' noisy copies to
// their losses and the gradients with respect to the logits. Nothing here knows the network.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

/// Of a wave's shape, a score reads clients, batch, noises (copies of an image, one row after
/// another), rows, classes and padded_classes.
struct ScoreStep {
  ScoreKind kind = ScoreKind::kCrossEntropy;
  const float* logits = nullptr;                 // [client, row, padded class]
  const int* y = nullptr;                        // [client, batch]
  const ScoreWeights<float>* weights = nullptr;  // [client]
  const float* mix = nullptr;                    // [client, batch]; null: 0
  const float* draws = nullptr;                  // [client, batch]; null: 0
  const float* targets = nullptr;                // [client, steps, batch, class]
  int steps = 0;
  float* room = nullptr;   // [client, batch, score_room()], overwritten
  void* out = nullptr;     // the gradient of the mean over the batch: [client, row, padded class]
  Terms* terms = nullptr;  // [client]: the means over the batch are added
  const int* step = nullptr;
  float* seen =
      nullptr;  // [client, batch]: mean probability of y, written in step 0; null: nowhere
};
cudaError_t take_score(Precision precision, const WaveShape& shape, const ScoreStep& score,
                       cudaStream_t stream);

/// Floats that a score needs for an image.
FEDSMOOTH_HOST_DEVICE inline int64_t score_room(const WaveShape& shape) {
  return int64_t{2} * shape.noises * shape.padded_classes +
         ScoredImage<float>::scratch_size(shape.noises, shape.padded_classes);
}

}  // namespace fedsmooth
