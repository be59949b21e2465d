#include "fedsmooth/engine/cuda/device_plan.h"

#include <numeric>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cuda/layer_passes.h"
#include "fedsmooth/engine/cuda/pair_groups.h"

namespace fedsmooth {
namespace {

constexpr int kRowTile = 64;  // rows that a product takes at least

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

DevicePlan::DevicePlan(const Network& network) : plan(network) {
  input = plan.input;
  classes = plan.classes;
  padded_classes = plan.stages.back().out.channels;
  row_multiple = kRowTile;
  pixels = plan.stages.front().in.pixels();
  map_channels = plan.stages.front().in.channels;
  size = trained = plan.size;
  working_weights = true;
  const auto table = [](Side side, const PairLists& lists, const std::vector<int>& order) {
    const auto results = static_cast<int>(lists.size());
    return PairTable(lists, order, choose_tiling(side, results, count_pairs(lists)));
  };
  for (const BatchedStage& stage : plan.stages) {
    const auto squares = [](const BatchedMap& map) {
      return order_by_squares(map.height, map.width);
    };
    std::vector<int> taps(stage.by_tap.size());
    std::iota(taps.begin(), taps.end(), 0);
    by_output.push_back(table(Side::kForward, stage.by_output, squares(stage.out)));
    by_input.push_back(table(Side::kMapGradient, stage.by_input, squares(stage.in)));
    by_tap.push_back(table(Side::kWeightGradient, stage.by_tap, taps));
  }
  const BatchedMap& map = plan.stages.front().in;
  std::vector<int16_t> from(map.row_size(), -1);
  for (size_t i = 0; i < plan.pixel.size(); ++i) {
    if (plan.pixel[i] >= 0) {
      from[plan.pixel[i] * map.channels + plan.channel[i]] = static_cast<int16_t>(i);
    }
  }
  source = DeviceArray<int16_t>(from);
  positions = DeviceArray<int>(plan.positions);
  mean = DeviceArray<float>(plan.mean);
  scale = DeviceArray<float>(plan.scale);
  real = DeviceArray<uint8_t>(plan.real);
}

std::unique_ptr<WavePasses> DevicePlan::make_passes(Precision precision, int clients, int rows,
                                                    bool gradients) const {
  return std::make_unique<LayerPasses>(*this, precision, clients, rows, gradients);
}

DeviceData::DeviceData(const Dataset& data)
    : host(data.images), images(data.images.count()), labels(data.size()) {
  images.upload(data.images.bytes(), images.size(), nullptr);
  labels.upload(data.labels.data(), labels.size(), nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "copy of the data");
}

}  // namespace fedsmooth
