#include "fedsmooth/engine/cuda/noisy_layer.h"

#include <algorithm>

namespace fedsmooth {
namespace {

bool is(const BatchedMap& map, int side, int channels) {
  return map.height == side && map.width == side && map.channels == channels;
}

}  // namespace

bool has_noisy_layer(const DevicePlan& device, Precision precision) {
  const BatchedPlan& plan = device.plan;
  if (precision != Precision::kBfloat16 || plan.stages.size() <= kNoisyStages ||
      !device.by_output.front().view().tiling.hopper || plan.input != Shape{3, 32, 32}) {
    return false;
  }
  const BatchedStage &product = plan.stages[0], &pool = plan.stages[1];
  // The image begins in the second row and column of blocks, one pixel down and right.
  const bool padded = plan.pixel.front() == 10 + 1 && plan.channel.front() == 4 + 1;
  return is(product.in, 10, 48) && is(product.out, 8, 64) && product.taps == 9 &&
         product.has_bias && product.relu && pool.pool2x2 && padded;
}

FirstLayerRows noisy_layer(const DeviceModel& model) {
  const BatchedPlan& plan = model.plan();
  const StackedWeights weights = model.weights();
  const BatchedStage& product = plan.stages.front();
  FirstLayerRows layer;
  std::copy_n(plan.mean.begin(), 3, layer.mean);
  std::copy_n(plan.scale.begin(), 3, layer.scale);
  layer.kernel = static_cast<const char*>(weights.working) + product.kernel * 2;
  layer.bias = weights.weights + product.bias;
  return layer;
}

}  // namespace fedsmooth
