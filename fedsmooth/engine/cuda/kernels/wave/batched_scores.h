// The scores of federated/objectives on the GPU: they map the logits of all clients' noisy copies
// to losses and their gradients with respect to the logits. They do not depend on the network.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

/// Arguments of take_score(). Pointers are to device memory.
struct ScoreStep {
  ScoreKind kind = ScoreKind::kCrossEntropy;
  const float* logits = nullptr;                 // [client, row, padded class]
  const int* y = nullptr;                        // [client, batch]
  const ScoreWeights<float>* weights = nullptr;  // [client]
  const float* mix = nullptr;                    // [client, batch]; null: 0
  const float* draws = nullptr;                  // [client, batch]; null: 0
  const float* targets = nullptr;                // [client, steps, batch, class]
  int steps = 0;
  float* room = nullptr;      // [client, batch, score_room()]: scratch
  void* out = nullptr;        // [client, row, padded class], in `precision`
  Terms* terms = nullptr;     // [client]: the means over the batch are added
  const int* step = nullptr;  // number of the current step
  /// [client, batch]: mean probability of y, written in step 0; null: not wanted.
  float* seen = nullptr;
};
/// Writes to `out` the gradient of the mean score of each client's batch, and adds its terms. Of
/// the shape it reads clients, batch, noises (consecutive copies of an image), rows, classes and
/// padded_classes. Enqueues on the stream and returns the launch's status.
cudaError_t take_score(Precision precision, const WaveShape& shape, const ScoreStep& score,
                       cudaStream_t stream);

/// Returns the number of floats of scratch memory that a score needs for an image.
FEDSMOOTH_HOST_DEVICE inline int64_t score_room(const WaveShape& shape) {
  return int64_t{2} * shape.noises * shape.padded_classes +
         ScoredImage<float>::scratch_size(shape.noises, shape.padded_classes);
}

}  // namespace fedsmooth
