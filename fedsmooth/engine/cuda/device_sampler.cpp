#include "fedsmooth/engine/cuda/device_sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/engine/cuda/noisy_layer.h"
#include "fedsmooth/engine/cuda/vote_pass.h"

namespace fedsmooth {
namespace {

using SharedModel = std::shared_ptr<const DeviceModel>;

// The passes at the one batch shape, and what leads into and out of them.
class DevicePass : public VotePass {
 public:
  DevicePass(SharedModel model, int batch)
      : VotePass(batch, model->network().graph.input, model->network().graph.classes),
        model_(std::move(model)),
        passes_(model_->network().make_passes(model_->precision(), 1, batch,
                                              /*gradients=*/false)) {}

  Array classify(const DeviceArray<float>& x) override {
    enqueue_images(x.data());
    const int64_t width = model().network().padded_classes();
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
    const VoteCount count{rows, passes_->logits(), classes(), model().network().padded_classes(),
                          counts};
    launches_.add("votes", count_votes(count, launches_.stream()));
  }

 protected:
  const DeviceModel& model() const { return *model_; }

  // Logits of a batch of images on the device.
  virtual void enqueue_images(const float* x) {
    const WaveShape shape = model().shape(batch(), batch());
    const InputMap map{{x, nullptr, 1}, {}, first_map(), passes_->input()};
    launches_.add("images", make_input(model().precision(), shape, map, launches_.stream()));
    run();
  }

  // Logits of noisy copies.
  virtual void enqueue_copies(NoisyRows rows) {
    rows.map = first_map();
    rows.out = passes_->input();
    launches_.add("noise", make_noisy_input(model().precision(), rows, launches_.stream()));
    run();
  }

  SharedModel model_;
  std::unique_ptr<WavePasses> passes_;

 private:
  FirstMap first_map() const { return model().network().first_map(batch()); }
  void run() { passes_->run(model().weights(), PassMode::kAnswers, launches_); }
};

// Copies in floating point are drawn by the kernel of the first layer, to the same bits.
class NoisyLayerPass : public DevicePass {
 public:
  NoisyLayerPass(SharedModel model, int batch)
      : DevicePass(std::move(model), batch), first_(noisy_layer(*model_)) {
    first_.out = passes().node_output(0);
    std::vector<NoisyCopies> clean(batch);
    for (int i = 0; i < batch; ++i) clean[i].image = static_cast<int32_t>(clean[i].first = i);
    clean_ = DeviceArray<NoisyCopies>(clean);
    check_cuda(cudaStreamSynchronize(nullptr), "copies");
  }

 private:
  PairPasses& passes() { return static_cast<PairPasses&>(*passes_); }

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
    passes().forward_from(1, model().weights(), launches_);
  }

  FirstLayerRows first_;
  DeviceArray<NoisyCopies> clean_;  // one of each image
};

// The name of what evaluates a network of family kPairs.
std::string evaluator_of(const DeviceModel& model) {
  const bool hopper = model.precision() == Precision::kBfloat16 &&
                      model.pairs().tables.front().by_output->view().tiling.hopper;
  return hopper ? "hopper" : "portable";
}

BaseClassifier classifier_of(const SharedModel& model, const MakePass& make, int batch,
                             const std::string& evaluator) {
  const char* const precision = model->precision() == Precision::kBfloat16 ? "bf16" : "fp32";
  return classifier_by(make, model->network().graph.classes, batch,
                       fmt::format("cuda/{}/{}x{}/{}", precision, evaluator, batch, gpu_name()));
}

}  // namespace

BaseClassifier gpu_classifier(const Model& model, Precision precision) {
  const auto loaded = std::make_shared<const DeviceModel>(model, precision);
  const bool draws_in_layer = has_noisy_layer(loaded->pairs(), precision);
  const auto make = [loaded, draws_in_layer](const NoiseLaw& law) -> std::unique_ptr<VotePass> {
    if (draws_in_layer && &law == &kFloatNoise) {
      return std::make_unique<NoisyLayerPass>(loaded, kGpuBatch);
    }
    return std::make_unique<DevicePass>(loaded, kGpuBatch);
  };
  return classifier_of(loaded, make, kGpuBatch, evaluator_of(*loaded));
}

BaseClassifier row_gpu_classifier(const Model& model, Precision precision, int batch) {
  const auto loaded = std::make_shared<const DeviceModel>(model, precision);
  const auto make = [loaded, batch](const NoiseLaw&) {
    return std::make_unique<DevicePass>(loaded, batch);
  };
  return classifier_of(loaded, make, batch, "rows");
}

}  // namespace fedsmooth
