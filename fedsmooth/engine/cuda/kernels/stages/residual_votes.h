// Votes of a residual network for noisy copies of images [3, 32, 32], in three launches. Each
// launch computes a whole stage (16 channels of 32 x 32 pixels, 32 of 16 x 16, 64 of 8 x 8) in
// shared memory; only maps between stages are in device memory. Values are bfloat16 with sums in
// float32, and a row's bits depend on its own copy alone. For GPUs of compute capability 9.0.
//
// A stage ends with the transition to the next one: that one's first convolution and its shortcut.
// So all other layers keep the shape. Weights are bfloat16 in the order in which lanes hold them;
// residual_weights.h packs them. Pointers are to device memory.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"

namespace fedsmooth {
namespace residual {

constexpr int kImageSide = 32, kImageChannels = 3, kStages = 3, kMaxClasses = 128;
/// Returns the number of channels of a stage's maps.
constexpr int channels_of(int stage) { return 16 << stage; }
/// Returns the height and width of a stage's maps.
constexpr int side_of(int stage) { return kImageSide >> stage; }

/// The normalisation (x - mean) scale and the first convolution.
struct Stem {
  const uint4* weights = nullptr;  // [dy, lane]
  const float* bias = nullptr;
  float mean[kImageChannels] = {}, scale[kImageChannels] = {};
};

/// The convolutions of a stage that keep its shape, in order. Every second one ends a block: it
/// adds the block's input.
struct LayerList {
  const uint4* weights = nullptr;
  const float* biases = nullptr;  // [layer, channel]
  int count = 0;
};

/// The first convolution of the next stage, with stride 2 and twice the channels, and its shortcut,
/// a 1x1 convolution with stride 2.
struct Transition {
  const uint4* weights = nullptr;   // [16 outputs, chunk of 16 inputs, dx, dy, lane]
  const uint4* shortcut = nullptr;  // [16 outputs, chunk of 16 inputs, lane]
  const float *bias = nullptr, *shortcut_bias = nullptr;
  /// Their results, maps [row, group of 8 channels, y, x] in cells of 16 bytes.
  uint32_t *h = nullptr, *x = nullptr;
};

/// The linear layer after the mean over all pixels, in float32.
struct Head {
  const float *weights = nullptr, *bias = nullptr;  // [class, channel], [class]
  int classes = 0;
};

}  // namespace residual

/// Arguments of count_residual_votes().
struct ResidualVotes {
  residual::Stem stem;
  /// The first stage begins with a block's first layer, the others with its second.
  residual::LayerList layers[residual::kStages];
  residual::Transition next[residual::kStages - 1];
  residual::Head head;
  NoisyRows rows;                 // `map` and `out` are not read
  VoteCounter* counts = nullptr;  // [requests, classes]; null: not wanted
  float* logits = nullptr;        // [row, class]; null: not wanted
};

/// Evaluates noisy copies, writes their logits and adds their votes as count_votes() does. Unused
/// rows are skipped. Enqueues three kernels on the stream and returns the launches' status.
/// Requires has_hopper_kernels().
cudaError_t count_residual_votes(const ResidualVotes& votes, cudaStream_t stream);

}  // namespace fedsmooth
