#include "fedsmooth/engine/cuda/pair_network.h"

#include <numeric>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cuda/pair_groups.h"
#include "fedsmooth/engine/cuda/pair_passes.h"

namespace fedsmooth {
namespace {

constexpr int kRowTile = 64;  // a product computes multiples of 64 rows

std::vector<int2> to_int2(const std::vector<Pair>& pairs) {
  std::vector<int2> out;
  for (const Pair& pair : pairs) out.push_back({pair.left, pair.right});
  return out;
}

}  // namespace

PairTable::PairTable(const PairLists& lists, const std::vector<int>& order, const Tiling& tiling) {
  std::vector<int> first;
  std::vector<Pair> pairs;
  for (const std::vector<Pair>& list : lists) {
    first.push_back(static_cast<int>(pairs.size()));
    pairs.insert(pairs.end(), list.begin(), list.end());
  }
  first.push_back(static_cast<int>(pairs.size()));
  const PairGroups groups = group_pairs(lists, order, tiling.results, tiling.items);
  for (size_t i = 0; tiling.hopper && i + 1 < groups.place_first.size(); ++i) {
    check(groups.place_first[i + 1] - groups.place_first[i] <= 32,
          "PairTable: a result has more pairs in a chunk than a warp has lanes");
  }
  first_ = DeviceArray<int>(first);
  pairs_ = DeviceArray<int2>(to_int2(pairs));
  order_ = DeviceArray<int>(groups.order);
  chunk_first_ = DeviceArray<int>(groups.chunk_first);
  items_ = DeviceArray<int>(groups.items);
  item_first_ = DeviceArray<int>(groups.item_first);
  lefts_ = DeviceArray<int>(groups.lefts);
  places_ = DeviceArray<int2>(to_int2(groups.places));
  place_first_ = DeviceArray<int>(groups.place_first);
  const PairSteps steps = tiling.hopper ? steps_of(groups, tiling.results) : PairSteps();
  steps_ = DeviceArray<int2>(to_int2(steps.steps));
  step_first_ = DeviceArray<int>(steps.first);
  view_.results = static_cast<int>(lists.size());
  view_.first = first_.data();
  view_.pairs = pairs_.data();
  view_.tiling = tiling;
  view_.groups = groups.groups;
  view_.most_items = groups.most_items;
  view_.order = order_.data();
  view_.chunk_first = chunk_first_.data();
  view_.items = items_.data();
  view_.item_first = item_first_.data();
  view_.lefts = lefts_.data();
  view_.places = places_.data();
  view_.place_first = place_first_.data();
  view_.step_count = static_cast<int>(steps.steps.size());
  view_.steps = steps_.data();
  view_.step_first = step_first_.data();
}

PairNetwork::PairNetwork(const Network& network)
    : DeviceNetwork(make_graph(network, Family::kPairs), MapLayout::pixels_first) {
  row_multiple = kRowTile;
  working_weights = true;
  const auto squares = [](const MapShape& map) { return order_by_squares(map.height, map.width); };
  const auto table = [](Side side, const PairLists& lists, const std::vector<int>& order) {
    const auto results = static_cast<int>(lists.size());
    return PairTable(lists, order, choose_tiling(side, results, count_pairs(lists)));
  };
  for (const GraphNode& node : graph.nodes) {
    NodeTables& made = tables.emplace_back();
    if (node.op != GraphNode::Op::kNone) {
      const NodePairs pairs = product_pairs(node);
      std::vector<int> taps(pairs.by_tap.size());
      std::iota(taps.begin(), taps.end(), 0);
      made.pairs = count_pairs(pairs.by_output);
      made.by_output = table(Side::kForward, pairs.by_output, squares(node.map));
      made.by_input = table(Side::kMapGradient, pairs.by_input, squares(node.in));
      made.by_tap = table(Side::kWeightGradient, pairs.by_tap, taps);
    }
    if (node.has_pool()) {
      const NodePairs pairs = pool_pairs(node);
      made.windows = table(Side::kForward, pairs.by_output, squares(node.out));
      made.windows_of = table(Side::kMapGradient, pairs.by_input, squares(node.map));
    }
  }
  std::vector<uint8_t> is_weight(graph.size);
  for (const int position : graph.positions) is_weight[position] = 1;
  real = DeviceArray<uint8_t>(is_weight);
}

bool PairNetwork::fuses_pool(size_t i, Precision precision) const {
  const auto multiplies = [&](size_t node) { return graph.nodes[node].op != GraphNode::Op::kNone; };
  return multiplies(i) && graph.nodes[i].pools_squares() && multiplies(i + 1) &&
         precision == Precision::kBfloat16 && tables[i].by_output->view().tiling.hopper;
}

std::unique_ptr<WavePasses> PairNetwork::make_passes(Precision precision, int clients, int rows,
                                                     bool gradients) const {
  return std::make_unique<PairPasses>(*this, precision, clients, rows, gradients);
}

DeviceData::DeviceData(const Dataset& data)
    : host(data.images), images(data.images.count()), labels(data.size()) {
  images.upload(data.images.bytes(), images.size(), nullptr);
  labels.upload(data.labels.data(), labels.size(), nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "copy of the data");
}

}  // namespace fedsmooth
