#include "fedsmooth/engine/cuda/device_gradients.h"

#include <cuda_bf16.h>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cuda/device_model.h"

namespace fedsmooth {
namespace {

// Returns the bytes of values in either precision.
std::vector<uint8_t> pack(const std::vector<float>& values, Precision precision) {
  std::vector<uint8_t> bytes(values.size() * (precision == Precision::kBfloat16 ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    if (precision == Precision::kBfloat16) {
      reinterpret_cast<__nv_bfloat16*>(bytes.data())[i] = __float2bfloat16(values[i]);
    } else {
      reinterpret_cast<float*>(bytes.data())[i] = values[i];
    }
  }
  return bytes;
}

float unpack(const std::vector<uint8_t>& bytes, int64_t i, Precision precision) {
  if (precision == Precision::kFloat32) return reinterpret_cast<const float*>(bytes.data())[i];
  return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(bytes.data())[i]);
}

// One thread's passes over a shared model.
class DeviceGradients {
 public:
  explicit DeviceGradients(std::shared_ptr<const DeviceModel> model)
      : model_(std::move(model)),
        source_(model_->network().source.download(nullptr)),
        scale_(model_->network().scale.download(nullptr)) {}

  Array logits(const Array& x) {
    const DeviceNetwork& network = model_->network();
    images_ = static_cast<int>(x.size(0));
    make_room();
    x_.upload(x.floats(), x.count(), launches_.stream());
    const InputMap input{{x_.data(), nullptr, 1}, {}, network.first_map(rows_), passes_->input()};
    launches_.add("images", make_input(model_->precision(), model_->shape(images_, rows_), input,
                                       launches_.stream()));
    passes_->run(model_->weights(), PassMode::kAnswers, launches_);
    std::vector<float> found(int64_t{rows_} * network.padded_classes());
    copy(found.data(), passes_->logits(), found.size() * sizeof(float));
    Array logits({images_, network.graph.classes});
    for (int64_t i = 0; i < logits.count(); ++i) {
      const int64_t row = i / network.graph.classes, k = i % network.graph.classes;
      logits.floats()[i] = found[row * network.padded_classes() + k];
    }
    return logits;
  }

  Array backward(const Array& gradient) {
    const DeviceNetwork& network = model_->network();
    check(passes_ != nullptr && gradient.size(0) == images_, "device gradients: of another pass");
    std::vector<float> padded(int64_t{rows_} * network.padded_classes());
    for (int64_t i = 0; i < gradient.count(); ++i) {
      const int64_t row = i / network.graph.classes, k = i % network.graph.classes;
      padded[row * network.padded_classes() + k] = gradient.floats()[i];
    }
    const std::vector<uint8_t> bytes = pack(padded, passes_->output_precision());
    check_cuda(cudaMemcpyAsync(passes_->output_gradient(), bytes.data(), bytes.size(),
                               cudaMemcpyHostToDevice, launches_.stream()),
               "gradient");
    passes_->differentiate_images(model_->weights(), launches_);
    const FirstMap first = network.first_map(rows_);
    const int64_t cells = int64_t{first.pixels} * first.channels;
    std::vector<uint8_t> map(rows_ * cells * (model_->precision() == Precision::kBfloat16 ? 2 : 4));
    copy(map.data(), passes_->input_gradient(), map.size());
    const auto [channels, height, width] = network.graph.input;
    Array found({images_, channels, height, width});
    for (int64_t row = 0; row < images_; ++row) {
      for (int64_t cell = 0; cell < cells; ++cell) {
        const int value = source_[cell];
        if (value < 0) continue;
        const int64_t pixel = cell / first.channels, c = cell % first.channels;
        const int64_t at = first.layout.offset(0, row, pixel) * first.channels + c;
        found.floats()[row * channels * height * width + value] =
            unpack(map, at, model_->precision()) * scale_[value / (height * width)];
      }
    }
    return found;
  }

 private:
  // Makes passes for at least images_ rows, unless there are. Rows without an image are zeros.
  void make_room() {
    const DeviceNetwork& network = model_->network();
    if (passes_ != nullptr && images_ <= rows_) return;
    passes_.reset();
    rows_ = network.rows_for(images_);
    passes_ = network.make_passes(model_->precision(), 1, rows_, /*gradients=*/true);
    const auto [channels, height, width] = network.graph.input;
    x_ = DeviceArray<float>(rows_ * channels * height * width);
  }

  // Copies to the host, after all launches so far, and waits.
  void copy(void* to, const void* from, size_t bytes) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, launches_.stream()),
               "copy from the GPU");
    check_cuda(cudaStreamSynchronize(launches_.stream()), "copy from the GPU");
  }

  std::shared_ptr<const DeviceModel> model_;
  std::vector<int16_t> source_;  // host copy of DeviceNetwork::source
  std::vector<float> scale_;
  Launches launches_;
  std::unique_ptr<WavePasses> passes_;
  DeviceArray<float> x_;
  int images_ = 0, rows_ = 0;  // images in the last pass, rows of the maps
};

}  // namespace

std::function<DifferentiableClassifier()> device_gradients(const Model& folded,
                                                           Precision precision) {
  const auto model = std::make_shared<const DeviceModel>(folded, precision);
  return [model]() -> DifferentiableClassifier {
    const auto passes = std::make_shared<DeviceGradients>(model);
    return {[passes](const Array& x) { return passes->logits(x); },
            [passes](const Array& gradient) { return passes->backward(gradient); }};
  };
}

}  // namespace fedsmooth
