#include "fedsmooth/engine/cuda/function_sampler.h"

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/cuda/kernels/batched_votes.h"

namespace fedsmooth {
namespace {

class FunctionSampler : public SerialSampler {
 public:
  FunctionSampler(const BaseClassifier& f, const DeviceFunction& on_gpu)
      : SerialSampler(f), on_gpu_(on_gpu), stream_(static_cast<cudaStream_t>(on_gpu.stream)) {}

  Votes count(const VoteRequest& r) override {
    check_cuda(cudaSetDevice(on_gpu_.gpu), "the model's GPU");
    Sizes sizes = r.x.sizes();
    sizes.insert(sizes.begin(), batch());
    DeviceArray<float> x(r.x.count()), noisy(batch() * r.x.count());
    x.upload(r.x.floats(), r.x.count(), stream_);
    noisy.clear(stream_);  // a short batch is filled up
    const NoisyCopies wanted{r.stream.key.value,
                             r.stream.item,
                             r.stream.client,
                             static_cast<float>(r.sigma),
                             static_cast<uint32_t>(r.first),
                             0,
                             0};
    DeviceArray<NoisyCopies> copies(1);
    copies.upload(&wanted, 1, stream_);
    DeviceArray<VoteCounter> counts(classes());
    counts.clear(stream_);
    NoisyRows rows;
    rows.copies = copies.data();
    rows.requests = 1;
    rows.x = x.data();
    rows.total = r.n;
    rows.rows = static_cast<int>(batch());
    rows.image_size = static_cast<int>(r.x.count());
    rows.area = static_cast<int>(r.x.size(1) * r.x.size(2));
    for (; rows.begin < r.n; rows.begin += batch()) {
      check_cuda(make_noisy_images(rows, noisy.data(), stream_), "noise");
      const float* logits = on_gpu_.call(noisy.data(), sizes);
      const auto width = static_cast<int>(classes());
      check_cuda(count_votes({rows, logits, width, width, counts.data()}, stream_), "votes");
    }
    const std::vector<VoteCounter> found = counts.download(stream_);
    return {found.begin(), found.end()};
  }

 private:
  DeviceFunction on_gpu_;
  cudaStream_t stream_;
};

}  // namespace

std::unique_ptr<Sampler> function_sampler(const BaseClassifier& f, const DeviceFunction& on_gpu) {
  return std::make_unique<FunctionSampler>(f, on_gpu);
}

}  // namespace fedsmooth
