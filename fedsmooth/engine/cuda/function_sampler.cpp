#include "fedsmooth/engine/cuda/function_sampler.h"

#include "fedsmooth/engine/cuda/vote_pass.h"

namespace fedsmooth {
namespace {

class FunctionPass : public VotePass {
 public:
  FunctionPass(const DeviceFunction& function, const Shape& input, int classes, int batch)
      : VotePass(batch, input, classes, static_cast<cudaStream_t>(function.stream)),
        function_(function),
        sizes_{batch, input[0], input[1], input[2]},
        copies_(int64_t{batch} * image_size()) {
    copies_.clear(launches_.stream());  // a short batch leaves some rows unwritten
  }

  DeviceLogits enqueue_images(const float* x) override {
    launches_.add("images", cudaMemcpyAsync(copies_.data(), x, sizeof(float) * copies_.size(),
                                            cudaMemcpyDeviceToDevice, launches_.stream()));
    return call();
  }

  DeviceLogits enqueue_copies(const NoisyRows& rows) override {
    launches_.add("noise", make_noisy_images(rows, copies_.data(), launches_.stream()));
    return call();
  }

 private:
  DeviceLogits call() { return {function_.call(copies_.data(), sizes_), classes()}; }

  DeviceFunction function_;
  Sizes sizes_;
  DeviceArray<float> copies_;
};

}  // namespace

BaseClassifier function_classifier(const DeviceFunction& function, const Shape& input, int classes,
                                   int batch, const std::string& description) {
  const OnGpu on(function.gpu);
  const auto make = [function, input, classes, batch](const NoiseLaw&) {
    return std::make_unique<FunctionPass>(function, input, classes, batch);
  };
  return classifier_by({make, classes, batch, description});
}

}  // namespace fedsmooth
