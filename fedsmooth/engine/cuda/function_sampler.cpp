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
    copies_.clear(launches_.stream());  // a short batch is filled up
  }

  Array classify(const DeviceArray<float>& x) override {
    launches_.add("images", cudaMemcpyAsync(copies_.data(), x.data(), sizeof(float) * x.size(),
                                            cudaMemcpyDeviceToDevice, launches_.stream()));
    Array logits({batch(), classes()});
    launches_.add("logits",
                  cudaMemcpyAsync(logits.data(), function_.call(copies_.data(), sizes_),
                                  logits.byte_count(), cudaMemcpyDeviceToHost, launches_.stream()));
    check_cuda(cudaStreamSynchronize(launches_.stream()), "logits");
    return logits;
  }

  void vote(const NoisyRows& rows, VoteCounter* counts) override {
    launches_.add("noise", make_noisy_images(rows, copies_.data(), launches_.stream()));
    const float* logits = function_.call(copies_.data(), sizes_);
    launches_.add("votes",
                  count_votes({rows, logits, classes(), classes(), counts}, launches_.stream()));
  }

 private:
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
  return classifier_by(make, classes, batch, description);
}

}  // namespace fedsmooth
