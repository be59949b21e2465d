#include "fedsmooth/engine/cuda/device_sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/cuda/noise_bank.h"
#include "fedsmooth/engine/cuda/noisy_layer.h"
#include "fedsmooth/engine/cuda/vote_pass.h"

namespace fedsmooth {
namespace {

using SharedModel = std::shared_ptr<const DeviceModel>;

// The passes at the one batch shape, and what leads into and out of them.
class DevicePass : public VotePass {
 public:
  DevicePass(SharedModel model, int batch)
      : VotePass(batch, model->network().input, model->network().classes),
        model_(std::move(model)),
        passes_(model_->network().make_passes(model_->precision(), 1, batch,
                                              /*gradients=*/false)) {}

  Array classify(const DeviceArray<float>& x) override {
    enqueue_images(x.data());
    const int64_t width = model().network().padded_classes;
    std::vector<float> rows(batch() * width);
    check_cuda(cudaMemcpyAsync(rows.data(), passes_->logits(), rows.size() * sizeof(float),
                               cudaMemcpyDeviceToHost, launches_.stream()),
               "logits");
    check_cuda(cudaStreamSynchronize(launches_.stream()), "logits");
    Array logits({batch(), classes()});
    for (int64_t r = 0; r < batch(); ++r) {
      std::copy_n(rows.data() + r * width, classes(), logits.floats() + r * classes());
    }
    return logits;
  }

  void vote(const NoisyRows& rows, VoteCounter* counts) override {
    enqueue_copies(rows);
    const VoteCount count{rows, passes_->logits(), classes(), model().network().padded_classes,
                          counts};
    launches_.add("votes", count_votes(count, launches_.stream()));
  }

 protected:
  const DeviceModel& model() const { return *model_; }

  // Logits of a batch of images on the device.
  virtual void enqueue_images(const float* x) {
    const WaveShape shape = model().shape(batch(), batch());
    InputMap map = model().input_map(passes_->input());
    map.first = {x, nullptr, 1};
    launches_.add("images", make_input(model().precision(), shape, map, launches_.stream()));
    run();
  }

  // Logits of noisy copies.
  virtual void enqueue_copies(NoisyRows rows) {
    rows.map = model().input_map(passes_->input());
    launches_.add("noise", make_noisy_input(model().precision(), rows, launches_.stream()));
    run();
  }

  SharedModel model_;
  std::unique_ptr<WavePasses> passes_;

 private:
  void run() { passes_->run(model().weights(), PassMode::kAnswers, launches_); }
};

// Copies are drawn by the kernel of the first layer, to the same bits.
class NoisyLayerPass : public DevicePass {
 public:
  NoisyLayerPass(SharedModel model, int batch)
      : DevicePass(std::move(model), batch), first_(noisy_layer(*model_)) {
    first_.out = passes().stage_output(kNoisyStages - 1);
    std::vector<NoisyCopies> clean(batch);
    for (int i = 0; i < batch; ++i) clean[i].image = static_cast<int32_t>(clean[i].first = i);
    clean_ = DeviceArray<NoisyCopies>(clean);
    check_cuda(cudaStreamSynchronize(nullptr), "copies");
  }

 private:
  LayerPasses& passes() { return static_cast<LayerPasses&>(*passes_); }

  // As copies with a sigma of zero: what counts votes is what is checked and probed.
  void enqueue_images(const float* x) override {
    NoisyRows rows;
    rows.copies = clean_.data();
    rows.requests = rows.rows = batch();
    rows.x = x;
    rows.total = batch();
    enqueue_copies(rows);
  }

  void enqueue_copies(NoisyRows rows) override {
    first_.rows = rows;
    launches_.add("noise", make_first_layer(first_, launches_.stream()));
    passes().forward_from(kNoisyStages, model().weights(), launches_);
  }

  FirstLayerRows first_;
  DeviceArray<NoisyCopies> clean_;  // one of each image
};

// The first layer in float32, and from the bank.
class BankedPass : public DevicePass {
 public:
  BankedPass(SharedModel model, int batch) : DevicePass(std::move(model), batch), first_(*model_) {}

  void take_images(const float* x, int count) override {
    images_ = count;
    if (count == 0) return;
    of_x_ = first_.of_images(x, count, launches_);
  }

  void prepare(const std::vector<VoteRequest>& requests) override {
    if (requests.empty()) return;
    VoteRequest draws = requests.front();
    draws.n += draws.first;
    draws.first = 0;
    for (const VoteRequest& r : requests) draws.n = std::max(draws.n, r.first + r.n);
    for (const VoteRequest& r : requests) {
      check(r.stream.key.value == draws.stream.key.value && r.stream.item == draws.stream.item &&
                r.sigma == draws.sigma,
            "a bank serves one stream");
    }
    const auto found = std::find_if(banks_.begin(), banks_.end(),
                                    [&](const auto& bank) { return bank->serves(draws); });
    if (found == banks_.end()) {
      // Selection's and estimation's; others, and shorter ones, have had their time.
      std::erase_if(banks_, [&](const auto& bank) { return bank->begins(draws); });
      if (banks_.size() == 2) banks_.erase(banks_.begin());
      try {
        banks_.push_back(std::make_unique<NoiseBank>(first_, *model_, draws, batch(), launches_));
      } catch (const OutOfDeviceMemory&) {
        throw Error("--noise-bank: the GPU has no room for a bank of {} draws; leave it out",
                    draws.n);
      }
      bank_ = banks_.back().get();
    } else {
      bank_ = found->get();
    }
  }

 private:
  void enqueue_sums(const NoisyRows& rows, const float* of_noise, const float* of_x, int images) {
    BankRows sums = first_.sums();
    sums.rows = rows;
    sums.of_noise = of_noise;
    sums.of_x = of_x;
    sums.x_rows = (images + 63) / 64 * 64;
    auto& passes = static_cast<LayerPasses&>(*passes_);
    sums.out = passes.stage_output(first_.stages() - 1);
    launches_.add("bank", add_from_bank(sums, launches_.stream()));
    passes.forward_from(first_.stages(), model().weights(), launches_);
  }

  // As noises on an image for which the layer's result is zero.
  void enqueue_images(const float* x) override {
    const DeviceArray<float> of_noise = first_.of_images(x, batch(), launches_);
    DeviceArray<float> nothing(int64_t{64} * first_.row_size());
    nothing.clear(launches_.stream());
    const DeviceArray<NoisyCopies> copies(std::vector<NoisyCopies>(1));
    check_cuda(cudaStreamSynchronize(nullptr), "bank");
    NoisyRows rows;
    rows.copies = copies.data();
    rows.requests = 1;
    rows.total = rows.rows = batch();
    enqueue_sums(rows, of_noise.data(), nothing.data(), 1);
    check_cuda(cudaStreamSynchronize(launches_.stream()), "bank");
  }

  void enqueue_copies(NoisyRows rows) override {
    enqueue_sums(rows, bank_->data(), of_x_.data(), images_);
  }

  FirstLayer first_;
  std::vector<std::unique_ptr<NoiseBank>> banks_;
  const NoiseBank* bank_ = nullptr;  // of the requests at hand
  DeviceArray<float> of_x_;
  int images_ = 0;
};

// The name of what evaluates a network that BatchedPlan supports.
std::string evaluator_of(const DeviceModel& model) {
  const bool hopper = model.precision() == Precision::kBfloat16 &&
                      model.device().by_output.front().view().tiling.hopper;
  return hopper ? "hopper" : "portable";
}

template <class Pass>
BaseClassifier classifier_of(const SharedModel& model, int batch, const std::string& evaluator) {
  const auto make = [model, batch] { return std::make_unique<Pass>(model, batch); };
  const char* const precision = model->precision() == Precision::kBfloat16 ? "bf16" : "fp32";
  return classifier_by(make, model->network().classes, batch,
                       fmt::format("cuda/{}/{}x{}/{}", precision, evaluator, batch, gpu_name()));
}

}  // namespace

BaseClassifier gpu_classifier(const Model& model, Precision precision) {
  const auto loaded = std::make_shared<const DeviceModel>(model, precision);
  BaseClassifier f = classifier_of<DevicePass>(loaded, kGpuBatch, evaluator_of(*loaded));
  if (!has_noisy_layer(loaded->device(), precision)) return f;
  const auto exact = f.exact_sampler;  // whose noise that layer does not draw
  f = classifier_of<NoisyLayerPass>(loaded, kGpuBatch, evaluator_of(*loaded));
  f.exact_sampler = exact;
  return f;
}

BaseClassifier banked_gpu_classifier(const Model& model) {
  const auto loaded = std::make_shared<const DeviceModel>(model, Precision::kBfloat16);
  BaseClassifier f =
      classifier_of<BankedPass>(loaded, kGpuBatch, evaluator_of(*loaded) + "-fp32-first");
  f.exact_sampler = nullptr;  // what is clipped after the sum is not a sum of parts
  return f;
}

BaseClassifier row_gpu_classifier(const Model& model, Precision precision, int batch) {
  return classifier_of<DevicePass>(std::make_shared<const DeviceModel>(model, precision), batch,
                                   "rows");
}

}  // namespace fedsmooth
