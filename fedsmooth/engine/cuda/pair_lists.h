// Convolutions as sums over pairs. Maps are [pixel, row, channel] with one row per noisy image, so
// that a convolution is, for each output pixel, a sum of matrix products
//
//     y[o] = sum over pairs (i, t) of x[i] w[t],     x[i] [rows, C],  w[t] [C, K],
//
// over the input pixels i that its taps t reach: no padding is multiplied, and nothing is gathered.
// Its two gradients are sums over the same pairs, sorted by i and by t. Channels are filled up with
// zeros to multiples of 16. A linear layer has one tap per pixel.
//
// A convolution of the image with stride s becomes one with stride 1 on blocks of s x s pixels as
// channels; kernel 11 and stride 4 become kernel 3 on 48 channels.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/graph.h"

namespace fedsmooth {

struct Pair {
  int left = 0, right = 0;
};
/// For each result, the pairs whose products are its sum.
using PairLists = std::vector<std::vector<Pair>>;

/// Returns the number of pairs in all lists.
int count_pairs(const PairLists& lists);

struct NodePairs {
  PairLists by_output, by_input;  // (i, t) for each o, (o, t) for each i
  PairLists by_tap;               // (i, o) for each t
};

/// Returns the pairs of a node's operation.
NodePairs product_pairs(const GraphNode& node);
/// Returns the windows of a node's maxima, as pairs of pixels before and after them.
NodePairs pool_pairs(const GraphNode& node);

}  // namespace fedsmooth
