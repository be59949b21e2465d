#include "fedsmooth/engine/cuda/device_model.h"

namespace fedsmooth {

DeviceModel::DeviceModel(const Model& model, Precision precision)
    : precision_(precision), network_(device_network(model.network)) {
  std::vector<float> values;
  for (const Array& w : model.weights) {
    values.insert(values.end(), w.floats(), w.floats() + w.count());
  }
  const int64_t size = network_->graph.size;
  const DeviceArray<float> uploaded(values), vector(size), velocity(size);
  weights_ = DeviceArray<float>(size);
  if (network_->working_weights && precision == Precision::kBfloat16) {
    working_ = DeviceArray<uint8_t>(size * 2);
  }
  spread_weights(*network_, uploaded, vector,
                 {1, weights_.data(), velocity.data(), working_.data()}, nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "spread_weights");
}

int DeviceModel::image_size() const {
  const auto [channels, height, width] = network_->graph.input;
  return static_cast<int>(channels * height * width);
}

WaveShape DeviceModel::shape(int images, int rows) const {
  const auto [channels, height, width] = network_->graph.input;
  WaveShape shape{1, images, 1, rows};
  shape.channels = static_cast<int>(channels);
  shape.height = static_cast<int>(height);
  shape.width = static_cast<int>(width);
  shape.image_size = image_size();
  return shape;
}

}  // namespace fedsmooth
