// Products of a network's layers on the GPU, as tests set them up.
#pragma once

#include "fedsmooth/base/random.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/pair_groups.h"
#include "fedsmooth/engine/cuda/pair_network.h"
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

  NumberType type() const {
    return precision == Precision::kBfloat16 ? NumberType::kBfloat16 : NumberType::kFloat;
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

// An operation of a network of family kPairs.
struct Product : NodePairs {
  explicit Product(const GraphNode& node)
      : NodePairs(product_pairs(node)),
        in(node.in),
        out(node.map),
        taps(node.taps()),
        relu(node.relu),
        pools_squares(node.pools_squares()) {}

  MapShape in, out;  // what it reads and what it gives, before maxima
  int taps;
  bool relu, pools_squares;
};

inline std::vector<Product> products_of(const std::string& network) {
  const GpuGraph graph =
      make_graph(network == "odd" ? odd_network() : named_network(network), Family::kPairs);
  std::vector<Product> products;
  for (const GraphNode& node : graph.nodes) {
    if (node.op != GraphNode::Op::kNone) products.emplace_back(node);
  }
  return products;
}

inline MapProduct product_of(const Product& stage, bool gradient, int rows,
                             const DeviceValues& left, const DeviceValues& kernel,
                             const PairTable& pairs, const DeviceValues& out) {
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

inline std::vector<int> squares(const MapShape& map) {
  return order_by_squares(map.height, map.width);
}

// One matrix for each client and each pixel or tap: [client, item, row, column].
struct Matrices {
  int64_t items, rows, columns;
  std::vector<double> values;

  int64_t size() const { return rows * columns; }
  const double* of(int64_t client, int64_t item) const {
    return values.data() + (client * items + item) * size();
  }
  Matrices transposed() const {
    Matrices out{items, columns, rows, std::vector<double>(values.size())};
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t first = i - i % size(), row = i % size() / columns, column = i % columns;
      out.values[first + column * rows + row] = values[i];
    }
    return out;
  }
};

// Normal values as the path holds them.
inline Matrices draw_normal(int64_t items, int64_t rows, int64_t columns, uint64_t key,
                            const Path& path) {
  std::vector<float> values(kClients * items * rows * columns);
  fill_normal({Key{key}}, 0, values.data(), std::ssize(values));
  if (path.type() == NumberType::kBfloat16) {
    for (float& value : values) value = from_bfloat16(to_bfloat16(value));
  }
  return {items, rows, columns, {values.begin(), values.end()}};
}

inline const Path kFloat{"Float32", Precision::kFloat32, false};
inline const Path kPortable{"Portable", Precision::kBfloat16, false};
inline const Path kBest{"Best", Precision::kBfloat16, true};

}  // namespace fedsmooth
