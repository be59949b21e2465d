#include "fedsmooth/engine/device_plan.h"

#include <ATen/ATen.h>

namespace fedsmooth {
namespace {

std::vector<int2> to_int2(const std::vector<Pair>& pairs) {
  std::vector<int2> out;
  for (const Pair& pair : pairs) out.push_back({pair.left, pair.right});
  return out;
}

}  // namespace

int largest_shared_memory() {
  int device = 0, bytes = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  return bytes;
}

PairTable::PairTable(const PairLists& lists, bool gradient) {
  PairGroups groups;
  int per_group = lists.size() <= 4 ? static_cast<int>(lists.size()) : 8;
  if (per_group == 3) per_group = 4;
  for (;; per_group /= 2) {
    groups = group_pairs(lists, per_group);
    const int bytes = shared_memory(gradient, per_group, groups.most_left, groups.most_right);
    if (bytes <= largest_shared_memory() || per_group == 1) break;
  }
  first_ = DeviceArray<int>(groups.first);
  pairs_ = DeviceArray<int2>(to_int2(groups.pairs));
  local_ = DeviceArray<int2>(to_int2(groups.local));
  left_ = DeviceArray<int>(groups.left);
  left_first_ = DeviceArray<int>(groups.left_first);
  right_ = DeviceArray<int>(groups.right);
  right_first_ = DeviceArray<int>(groups.right_first);
  view_ = {static_cast<int>(lists.size()),
           first_.data(),
           pairs_.data(),
           groups.groups,
           per_group,
           groups.most_left,
           groups.most_right,
           left_.data(),
           left_first_.data(),
           right_.data(),
           right_first_.data(),
           local_.data()};
}

DevicePlan::DevicePlan(const Network& network) : plan(network) {
  for (const BatchedStage& stage : plan.stages) {
    by_output.emplace_back(stage.by_output, false);
    by_input.emplace_back(stage.by_input, true);
    by_tap.emplace_back(stage.by_tap, false);
  }
  const BatchedMap& map = plan.stages.front().in;
  std::vector<int> from(map.row_size(), -1);
  for (size_t i = 0; i < plan.pixel.size(); ++i) {
    if (plan.pixel[i] >= 0) {
      from[plan.pixel[i] * map.channels + plan.channel[i]] = static_cast<int>(i);
    }
  }
  source = DeviceArray<int>(from);
  positions = DeviceArray<int>(plan.positions);
  mean = DeviceArray<float>(plan.mean);
  scale = DeviceArray<float>(plan.scale);
  real = DeviceArray<uint8_t>(plan.real);
}

DeviceData::DeviceData(const Dataset& data)
    : host(data.images), images(data.images.numel()), labels(data.labels.numel()) {
  images.upload(data.images.contiguous().data_ptr<uint8_t>(), images.size(), nullptr);
  labels.upload(data.labels.contiguous().data_ptr<int64_t>(), labels.size(), nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "copy of the data");
}

}  // namespace fedsmooth
