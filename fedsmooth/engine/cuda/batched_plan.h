// How the GPU sees a layer list. Maps are [pixel, row, channel] with one row per noisy image, so
// that a convolution is, for each output pixel, a sum of matrix products
//
//     y[o] = sum over pairs (i, t) of x[i] w[t],     x[i] [rows, C],  w[t] [C, K],
//
// over the input pixels i that meet its taps t: no padding is multiplied, nothing is gathered. Its
// two gradients are sums over the same pairs, sorted by i and by t. Channels are filled up with
// zeros to multiples of 16.
//
// A strided convolution is one of stride 1 on blocks of s x s pixels taken as channels; kernel 11
// and stride 4 become kernel 3 on 48 channels. A linear layer has one tap per pixel.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/model/parts.h"

namespace fedsmooth {

struct Pair {
  int left = 0, right = 0;
};
/// For each result the pairs whose products it sums up.
using PairLists = std::vector<std::vector<Pair>>;

int count_pairs(const PairLists& lists);

struct BatchedMap {
  int height = 0, width = 0, channels = 0;  // channels filled up

  int pixels() const { return height * width; }
  int64_t row_size() const { return int64_t{pixels()} * channels; }
};

struct BatchedStage {
  bool is_pool = false;
  bool relu = false;     // of a convolution, or of the one before a pool
  bool pool2x2 = false;  // a pool's windows: 2x2 pixels, each pixel in one of them
  BatchedMap in, out;
  bool has_bias = true;
  int64_t kernel = 0, bias = 0;  // where a client's vector holds [taps, C, K] and [K]
  bool masked = false;           // some taps of its blocks lie beyond the kernel
  int taps = 0;
  PairLists by_output, by_input;  // convolution: (i, t) for each o, (o, t) for each i
  PairLists by_tap;               // convolution: (i, o) for each t; pool: unused
};

struct BatchedPlan {
  /// The parts of a stage that a plan computes. A stage with any other part is refused.
  static constexpr Parts kParts = {Part::kNormalize, Part::kConv, Part::kLinear, Part::kRelu,
                                   Part::kMaxPool};

  /// Why it cannot run a network, with the stage that it does not know; empty if it can. It takes
  /// chains of kParts that begin with a normalisation alone and end with a linear layer alone, for
  /// images of up to 12,000 values.
  static std::string refusal(const Network& network);
  static bool supports(const Network& network) { return refusal(network).empty(); }
  explicit BatchedPlan(const Network& network);

  std::vector<BatchedStage> stages;
  Shape input = {};        // of an image
  std::vector<int> pixel;  // of the input map, for each value of an image
  std::vector<int> channel;
  std::vector<float> mean, scale;  // per channel of an image: (x - mean) scale
  int classes = 0;

  int64_t size = 0;            // of a client's vector
  std::vector<int> positions;  // of each weight in it, tensors in the order of parameters()
  std::vector<uint8_t> real;   // whether a position is that of a weight
};

}  // namespace fedsmooth
