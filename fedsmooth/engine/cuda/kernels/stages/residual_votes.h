// Votes of a residual network for noisy copies of images of 3 x 32 x 32, in three launches: each
// takes a copy through a whole stage (16 channels of 32 x 32 pixels, 32 of 16 x 16, 64 of 8 x 8) in
// shared memory, and only maps between stages go through device memory. In bfloat16 with sums in
// float32; a row's bits depend on its own copy alone. For GPUs of compute capability 9.0.
//
// A stage ends with the way into the next one: that one's first convolution and its shortcut. So
// the layers that follow always keep the shape.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"

namespace fedsmooth {
namespace residual {

constexpr int kImageSide = 32, kImageChannels = 3, kStages = 3, kMaxClasses = 128;
/// The shape of a stage's maps.
constexpr int channels_of(int stage) { return 16 << stage; }
constexpr int side_of(int stage) { return kImageSide >> stage; }

/// Weights are bfloat16 in the order in which lanes hold them; residual_weights.h packs them.

/// The first convolution, after the normalisation (x - mean) scale.
struct Stem {
  const uint4* weights = nullptr;  // [dy, lane]
  const float* bias = nullptr;
  float mean[kImageChannels] = {}, scale[kImageChannels] = {};
};

/// The convolutions of a stage that keep its shape, in order. Every second one ends a block: it
/// adds what the block began with.
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
  uint32_t *h = nullptr, *x = nullptr;  // what they give: [row, 8 channels, y, x], pairs of values
};

/// The linear layer after the mean over all pixels, in float32.
struct Head {
  const float *weights = nullptr, *bias = nullptr;  // [class, channel], [class]
  int classes = 0;
};

}  // namespace residual

struct ResidualVotes {
  residual::Stem stem;
  residual::LayerList layers[residual::kStages];  // the first stage's ends a block with its second
  residual::Transition next[residual::kStages - 1];
  residual::Head head;
  NoisyRows rows;                 // without a map
  VoteCounter* counts = nullptr;  // [requests, classes], unless null: as count_votes() adds them
  float* logits = nullptr;        // [row, class], unless null
};

/// Only where has_hopper_kernels(). Rows that are not in the list are left out.
cudaError_t count_residual_votes(const ResidualVotes& votes, cudaStream_t stream);

}  // namespace fedsmooth
