#include "fedsmooth/engine/device_sampler.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/engine/batched_votes.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/layer_passes.h"

namespace fedsmooth {
namespace {

// Weights on the device, as the passes of one client take them.
struct DeviceModel {
  DeviceModel(const Model& model, Precision p) : precision(p), device(model.network) {
    const BatchedPlan& plan = device.plan;
    std::vector<float> values;
    for (const Tensor& w : model.weights) {
      const Tensor dense = w.contiguous();
      values.insert(values.end(), dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
    }
    const DeviceArray<float> uploaded(values), vector(plan.size), velocity(plan.size);
    weights = DeviceArray<float>(plan.size);
    if (precision == Precision::kBfloat16) working = DeviceArray<uint8_t>(plan.size * 2);
    WeightSpread spread;
    spread.clients = 1;
    spread.size = plan.size;
    spread.count = uploaded.size();
    spread.values = uploaded.data();
    spread.positions = device.positions.data();
    spread.vector = vector.data();
    spread.weights = weights.data();
    spread.velocity = velocity.data();
    spread.working = working.data();
    check_cuda(spread_weights(spread, nullptr), "spread_weights");
    check_cuda(cudaStreamSynchronize(nullptr), "spread_weights");
  }

  StackedWeights stacked() const { return {weights.data(), working.data(), nullptr}; }

  Precision precision;
  DevicePlan device;
  DeviceArray<float> weights;
  DeviceArray<uint8_t> working;
};

// The passes at the one batch shape, and what leads into them.
class DevicePass {
 public:
  explicit DevicePass(std::shared_ptr<const DeviceModel> model)
      : model_(std::move(model)),
        passes_(model_->device, model_->precision, 1, kGpuBatch, /*gradients=*/false) {}

  const BatchedPlan& plan() const { return model_->device.plan; }
  int64_t image_size() const {
    const auto [channels, height, width] = plan().input;
    return channels * height * width;
  }

  InputMap input() const {
    const DevicePlan& device = model_->device;
    const BatchedMap& map = plan().stages.front().in;
    InputMap input;
    input.source = device.source.data();
    input.mean = device.mean.data();
    input.scale = device.scale.data();
    input.pixels = map.pixels();
    input.map_channels = map.channels;
    input.out = passes_.input();
    return input;
  }

  // Logits [kGpuBatch, classes] of images [kGpuBatch, C, H, W].
  Tensor classify(const Tensor& images) {
    TORCH_CHECK(images.numel() == kGpuBatch * image_size(), "classify: ", images.sizes());
    const Tensor dense = images.to(at::kFloat).contiguous();
    const DeviceArray<float> x(dense.numel());
    x.upload(dense.data_ptr<float>(), x.size(), launches_.stream());
    const auto [channels, height, width] = plan().input;
    WaveShape shape{1, kGpuBatch, 1, kGpuBatch};
    shape.channels = static_cast<int>(channels);
    shape.height = static_cast<int>(height);
    shape.width = static_cast<int>(width);
    shape.image_size = static_cast<int>(image_size());
    InputMap map = input();
    map.x = x.data();
    launches_.add("images", make_input(model_->precision, shape, map, launches_.stream()));
    passes_.forward(model_->stacked(), launches_);
    const int64_t stride = plan().stages.back().out.channels;
    const Tensor logits = at::empty({kGpuBatch, stride});
    check_cuda(cudaMemcpyAsync(logits.data_ptr(), passes_.logits(), logits.nbytes(),
                               cudaMemcpyDeviceToHost, launches_.stream()),
               "logits");
    check_cuda(cudaStreamSynchronize(launches_.stream()), "logits");
    return logits.narrow(1, 0, plan().classes).contiguous();
  }

  // Adds the votes of the rows to counts [images, classes] on the device; does not wait.
  void vote(NoisyRows rows, int* counts) {
    rows.rows = kGpuBatch;
    rows.map = input();
    launches_.add("noise", make_noisy_input(model_->precision, rows, launches_.stream()));
    passes_.forward(model_->stacked(), launches_);
    const VoteCount count{rows, passes_.logits(), plan().classes, plan().stages.back().out.channels,
                          counts};
    launches_.add("votes", count_votes(count, launches_.stream()));
  }

  cudaStream_t stream() const { return launches_.stream(); }

 private:
  std::shared_ptr<const DeviceModel> model_;
  LayerPasses passes_;
  Launches launches_;
};

class DeviceSampler : public Sampler {
 public:
  DeviceSampler(std::shared_ptr<const DeviceModel> model, std::function<bool()> cancelled)
      : pass_(std::move(model)), cancelled_(std::move(cancelled)) {}

  std::vector<Votes> count_all(const std::vector<VoteRequest>& requests) override {
    const int64_t size = pass_.image_size(), classes = pass_.plan().classes;
    std::vector<NoisyCopies> copies;
    std::vector<float> images;
    NoisyRows rows;
    for (const VoteRequest& r : requests) {
      const Tensor x = r.x.contiguous();
      TORCH_CHECK(x.numel() == size, "count_all: an image of ", x.sizes());
      images.insert(images.end(), x.data_ptr<float>(), x.data_ptr<float>() + size);
      copies.push_back({r.stream.key.value, r.stream.item, r.stream.client,
                        static_cast<float>(r.sigma), rows.total});
      rows.total += r.n;
    }
    const DeviceArray<NoisyCopies> on_device(copies);
    const DeviceArray<float> x(images);
    const DeviceArray<int> counts(static_cast<int64_t>(requests.size()) * classes);
    counts.clear(nullptr);
    check_cuda(cudaStreamSynchronize(nullptr), "count_all");
    rows.copies = on_device.data();
    rows.images = static_cast<int>(requests.size());
    rows.x = x.data();
    rows.image_size = static_cast<int>(size);
    rows.area = static_cast<int>(size / pass_.plan().input[0]);
    for (; rows.begin < rows.total; rows.begin += kGpuBatch) {
      if (cancelled_ && cancelled_()) throw Cancelled{};
      pass_.vote(rows, counts.data());
    }
    const std::vector<int> found = counts.download(pass_.stream());
    std::vector<Votes> votes;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto first = found.begin() + static_cast<int64_t>(i) * classes;
      votes.emplace_back(first, first + classes);
    }
    return votes;
  }

  Votes count(const VoteRequest& request) override { return count_all({request})[0]; }
  int64_t requests_at_once(int64_t n) const override {
    return std::clamp<int64_t>(kVotesAtOnce / n, 1, kRequestsAtOnce);
  }

 private:
  // Enough that the last batch hardly counts; few enough that an interruption loses little.
  static constexpr int64_t kVotesAtOnce = 1'600'000, kRequestsAtOnce = 256;

  DevicePass pass_;
  std::function<bool()> cancelled_;
};

std::string describe(const DeviceModel& model) {
  const bool bf16 = model.precision == Precision::kBfloat16;
  const bool hopper = bf16 && model.device.by_output.front().view().tiling.hopper;
  return fmt::format("cuda/{}/{}x{}/{}", bf16 ? "bf16" : "fp32", hopper ? "hopper" : "portable",
                     kGpuBatch, gpu_name());
}

}  // namespace

BaseClassifier gpu_classifier(const Model& model, Precision precision) {
  const auto shared = std::make_shared<const DeviceModel>(model, precision);
  BaseClassifier f;
  f.make = [shared]() -> Classifier {
    const auto pass = std::make_shared<DevicePass>(shared);
    return [pass](const Tensor& images) { return pass->classify(images); };
  };
  f.classes = shared->device.plan.classes;
  f.batch = kGpuBatch;
  f.description = describe(*shared);
  f.sampler = [shared](std::function<bool()> cancelled) {
    return std::make_unique<DeviceSampler>(shared, std::move(cancelled));
  };
  return f;
}

}  // namespace fedsmooth
