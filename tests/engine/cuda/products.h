// Products of a network's layers on the GPU, as tests set them up.
#pragma once

#include "fedsmooth/base/random.h"
#include "fedsmooth/engine/cuda/device_plan.h"
#include "fedsmooth/engine/cuda/kernels/batched_product.h"
#include "fedsmooth/engine/cuda/pair_groups.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/networks.h"

namespace fedsmooth {

inline constexpr int kClients = 3;
inline constexpr double kRounding = 1.0 / (1 << 23);

// How products are computed.
struct Path {
  std::string name;
  Precision precision;
  bool best;  // this GPU's own tiling instead of the portable one

  at::ScalarType type() const {
    return precision == Precision::kBfloat16 ? at::kBFloat16 : at::kFloat;
  }
  double rounding() const { return precision == Precision::kBfloat16 ? 1.0 / (1 << 8) : kRounding; }
  Tiling tiling(Side side, const PairLists& lists) const {
    const auto results = static_cast<int>(lists.size());
    return best ? choose_tiling(side, results, count_pairs(lists)) : portable_tiling(side, results);
  }
};

// Odd sizes, strides, a layer wider than a tile, a linear one on a large map.
inline Network odd_network() {
  using Kind = Layer::Kind;
  return {"odd",
          {2, 13, 10},
          {two_channel_normalization(), layer(Kind::kConv, "a", 7, 5, 3, 1), layer(Kind::kRelu, ""),
           layer(Kind::kConv, "b", 70, 3, 1, 2), layer(Kind::kConv, "c", 20, 3, 2, 1),
           layer(Kind::kLinear, "d", 6)}};
}

// A stage's product of maps.
inline MapProduct product_of(const BatchedStage& stage, bool gradient, int rows,
                             const DeviceTensor& left, const DeviceTensor& kernel,
                             const PairTable& pairs, const DeviceTensor& out) {
  MapProduct p;
  p.left = left.data();
  p.kernel = kernel.data();
  p.pairs = pairs.view();
  p.out = out.data();
  p.gradient = gradient;
  p.clients = kClients;
  p.rows = rows;
  p.depth = gradient ? stage.out.channels : stage.in.channels;
  p.columns = gradient ? stage.in.channels : stage.out.channels;
  p.left_pixels = gradient ? stage.out.pixels() : stage.in.pixels();
  p.taps = stage.taps;
  p.kernel_client = int64_t{stage.taps} * p.depth * p.columns;
  p.relu = !gradient && stage.relu;
  return p;
}

inline BatchedPlan plan_of(const std::string& network) {
  return BatchedPlan(network == "odd" ? odd_network() : named_network(network));
}

inline std::vector<int> squares(const BatchedMap& map) {
  return order_by_squares(map.height, map.width);
}

// Normal values as the path holds them.
inline Tensor draw_normal(const std::vector<int64_t>& sizes, uint64_t key, const Path& path) {
  Tensor values = at::empty(sizes);
  fill_normal({Key{key}}, 0, values.data_ptr<float>(), values.numel());
  return values.to(path.type());
}

inline const Path kFloat{"Float32", Precision::kFloat32, false};
inline const Path kPortable{"Portable", Precision::kBfloat16, false};
inline const Path kBest{"Best", Precision::kBfloat16, true};

}  // namespace fedsmooth
