#include "fedsmooth/engine/cuda/pair_lists.h"

namespace fedsmooth {
namespace {

// Square windows with `taps` taps along an axis.
struct Windows {
  int taps, stride, padding;
};

NodePairs pairs_of(const MapShape& in, const MapShape& out, const Windows& windows) {
  NodePairs pairs;
  pairs.by_output.resize(out.pixels());
  pairs.by_input.resize(in.pixels());
  pairs.by_tap.resize(windows.taps * windows.taps);
  for (int o = 0; o < out.pixels(); ++o) {
    for (int t = 0; t < windows.taps * windows.taps; ++t) {
      const int y = o / out.width * windows.stride - windows.padding + t / windows.taps;
      const int x = o % out.width * windows.stride - windows.padding + t % windows.taps;
      if (y < 0 || y >= in.height || x < 0 || x >= in.width) continue;
      const int i = y * in.width + x;
      pairs.by_output[o].push_back({i, t});
      pairs.by_input[i].push_back({o, t});
      pairs.by_tap[t].push_back({i, o});
    }
  }
  return pairs;
}

// Every pixel is an input of the single output, with a tap of its own.
NodePairs all_pixels(int pixels) {
  NodePairs pairs;
  pairs.by_output.resize(1);
  for (int i = 0; i < pixels; ++i) {
    pairs.by_output[0].push_back({i, i});
    pairs.by_input.push_back({{0, i}});
    pairs.by_tap.push_back({{i, 0}});
  }
  return pairs;
}

}  // namespace

int count_pairs(const PairLists& lists) {
  size_t count = 0;
  for (const std::vector<Pair>& list : lists) count += list.size();
  return static_cast<int>(count);
}

NodePairs product_pairs(const GraphNode& node) {
  if (node.op == GraphNode::Op::kLinear) return all_pixels(node.in.pixels());
  if (node.input > 0) return pairs_of(node.in, node.map, {node.kernel, node.stride, node.padding});
  // Map 0 includes the padding, and its blocks are as wide as the stride.
  return pairs_of(node.in, node.map, {(node.kernel + node.block - 1) / node.block, 1, 0});
}

NodePairs pool_pairs(const GraphNode& node) {
  return pairs_of(node.map, node.out, {node.pool, node.pool_stride, 0});
}

}  // namespace fedsmooth
