// Networks and modules that only LibTorch can run, on the GPU.
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/cuda/kernels/batched_votes.h"
#include "fedsmooth/engine/torch/fused_forward.h"
#include "fedsmooth/engine/torch/steady_batch.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "fedsmooth/engine/torch/torch_script.h"
#include "fedsmooth/model/fold.h"

namespace fedsmooth {
namespace {

// Kernels of ours and of LibTorch follow each other on its default stream.
constexpr cudaStream_t kStream = nullptr;

class TorchSampler : public Sampler {
 public:
  TorchSampler(const BaseClassifier& f, TensorFunction on_gpu, Stop stopped)
      : Sampler(f), f_(std::move(on_gpu)), stopped_(std::move(stopped)) {}

  Votes count(const VoteRequest& r) override {
    c10::NoGradGuard no_grad;
    const at::Tensor x = as_tensor(r.x).to(at::kCUDA);
    if (!noisy_.defined()) {
      noisy_ = at::zeros({batch(), x.size(0), x.size(1), x.size(2)}, x.options());
    }
    DeviceArray<NoisyCopies> copies(
        std::vector<NoisyCopies>{{r.stream.key.value, r.stream.item, r.stream.client,
                                  static_cast<float>(r.sigma), static_cast<uint32_t>(r.first)}});
    DeviceArray<VoteCounter> counts(classes());
    counts.clear(kStream);
    NoisyRows rows;
    rows.copies = copies.data();
    rows.requests = 1;
    rows.x = x.data_ptr<float>();
    rows.total = r.n;
    rows.rows = static_cast<int>(batch());
    rows.image_size = static_cast<int>(x.numel());
    rows.area = static_cast<int>(x.size(1) * x.size(2));
    for (; rows.begin < r.n; rows.begin += batch()) {
      if (stopped_ && stopped_()) throw Interrupted{};
      check_cuda(make_noisy_images(rows, noisy_.data_ptr<float>(), kStream), "noise");
      const at::Tensor logits = f_(noisy_).contiguous();
      const auto width = static_cast<int>(classes());
      check_cuda(
          count_votes({rows, logits.data_ptr<float>(), width, width, counts.data()}, kStream),
          "votes");
    }
    const std::vector<VoteCounter> found = counts.download(kStream);
    return {found.begin(), found.end()};
  }

 protected:
  Array evaluate(const Array& images) override {
    c10::NoGradGuard no_grad;
    return to_array(f_(as_tensor(images).to(at::kCUDA)));
  }

  Array evaluate_again(const FunctionCheck& check) override {
    c10::NoGradGuard no_grad;
    if (!checked_.defined() || checked_.sizes() != check.inputs.sizes()) {
      checked_ = as_tensor(check.inputs).to(at::kCUDA);
    }
    return to_array(f_(checked_));
  }

 private:
  TensorFunction f_;
  Stop stopped_;
  at::Tensor noisy_;
  at::Tensor checked_;  // the inputs of check()
};

BaseClassifier classifier_for(const TensorFunction& on_gpu, int64_t classes, int64_t batch,
                              const char* precision) {
  BaseClassifier f;
  f.make = [on_gpu]() -> Classifier {
    return [on_gpu](const Array& images) {
      c10::NoGradGuard no_grad;
      return to_array(on_gpu(as_tensor(images).to(at::kCUDA)));
    };
  };
  f.classes = classes;
  f.batch = batch;
  f.description =
      fmt::format("cuda/{}/libtorchx{}/{}/torch-{}", precision, batch, gpu_name(), TORCH_VERSION);
  f.sampler = [on_gpu, f](Stop stopped) {
    return std::make_unique<TorchSampler>(f, on_gpu, std::move(stopped));
  };
  return f;
}

BaseClassifier choose_batch(const TensorFunction& on_gpu, int64_t classes, const char* precision,
                            const Shape& input) {
  // Algorithms that are chosen by their speed may change from run to run.
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setDeterministicCuDNN(true);
  const auto make = [&](int64_t batch) {
    return classifier_for(on_gpu, classes, batch, precision);
  };
  return largest_steady_batch(make, {input.begin(), input.end()});
}

}  // namespace

BaseClassifier torch_gpu_classifier(const Model& trained) {
  // Folding changes what is rounded to bfloat16. Certificates are about the network that runs.
  const Model model = fold_batch_norm(trained);
  Tensors weights;
  for (const Array& w : model.weights) {
    const at::Tensor moved = as_tensor(w).to(at::kCUDA, at::kBFloat16);
    weights.push_back(w.axes() == 4 ? moved.contiguous(at::MemoryFormat::ChannelsLast) : moved);
  }
  const TensorFunction on_gpu = [network = model.network, weights](const at::Tensor& images) {
    const at::Tensor rounded = images.to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
    return fused_forward(network, weights, rounded).to(at::kFloat);
  };
  return choose_batch(on_gpu, output_shape(model.network)[0], "bf16", model.network.input);
}

BaseClassifier torch_script_gpu_classifier(const std::filesystem::path& path, int64_t classes,
                                           const Shape& input) {
  // What is called float32 is not to be rounded to TF32.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  return choose_batch(load_torch_script(path, /*gpu=*/true), classes, "fp32", input);
}

}  // namespace fedsmooth
