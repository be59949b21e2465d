#include "fedsmooth/engine/cuda/device_sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/engine/cuda/noisy_layer.h"
#include "fedsmooth/engine/cuda/vote_pass.h"

namespace fedsmooth {
namespace {

using SharedModel = std::shared_ptr<const DeviceModel>;

// Passes at the one batch shape, over images or noisy copies that a kernel writes to the first map.
class DevicePass : public VotePass {
 public:
  DevicePass(SharedModel model, int batch)
      : VotePass(batch, model->network().graph.input, model->network().graph.classes),
        model_(std::move(model)),
        passes_(model_->network().make_passes(model_->precision(), 1, batch,
                                              /*gradients=*/false)) {}

  DeviceLogits enqueue_images(const float* x) override {
    const WaveShape shape = model().shape(batch(), batch());
    const InputMap map{{x, nullptr, 1}, {}, first_map(), passes_->input()};
    launches_.add("images", make_input(model().precision(), shape, map, launches_.stream()));
    return run();
  }

  DeviceLogits enqueue_copies(const NoisyRows& copies) override {
    NoisyRows rows = copies;
    rows.map = first_map();
    rows.out = passes_->input();
    launches_.add("noise", make_noisy_input(model().precision(), rows, launches_.stream()));
    return run();
  }

 protected:
  const DeviceModel& model() const { return *model_; }

  DeviceLogits logits() const { return {passes_->logits(), model().network().padded_classes()}; }

  SharedModel model_;
  std::unique_ptr<WavePasses> passes_;

 private:
  FirstMap first_map() const { return model().network().first_map(batch()); }
  DeviceLogits run() {
    passes_->run(model().weights(), PassMode::kAnswers, launches_);
    return logits();
  }
};

// Passes whose first layer draws the noisy copies itself, to the same bits as DevicePass.
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

  // Evaluates images as copies with a sigma of zero, so that the check and the probe run the same
  // launches as the votes.
  DeviceLogits enqueue_images(const float* x) override {
    NoisyRows rows;
    rows.copies = clean_.data();
    rows.requests = rows.rows = batch();
    rows.x = x;
    rows.total = batch();
    return enqueue_copies(rows);
  }

  DeviceLogits enqueue_copies(const NoisyRows& rows) override {
    first_.rows = rows;
    launches_.add("noise", make_first_layer(first_, launches_.stream()));
    passes().forward_from(1, model().weights(), launches_);
    return logits();
  }

 private:
  PairPasses& passes() { return static_cast<PairPasses&>(*passes_); }

  FirstLayerRows first_;
  DeviceArray<NoisyCopies> clean_;  // one copy of each image, with a sigma of zero
};

// Returns the name, in descriptions, of the kernels that evaluate a network of family kPairs.
std::string evaluator_of(const DeviceModel& model) {
  const bool hopper = model.precision() == Precision::kBfloat16 &&
                      model.pairs().tables.front().by_output->view().tiling.hopper;
  return hopper ? "hopper" : "portable";
}

VotePasses passes_of(const SharedModel& model, const MakePass& make, int batch,
                     const std::string& evaluator) {
  const char* const precision = model->precision() == Precision::kBfloat16 ? "bf16" : "fp32";
  return {make, model->network().graph.classes, batch,
          fmt::format("cuda/{}/{}x{}/{}", precision, evaluator, batch, gpu_name())};
}

}  // namespace

VotePasses gpu_passes(const Model& model, Precision precision, int batch) {
  const auto loaded = std::make_shared<const DeviceModel>(model, precision);
  const bool draws_in_layer = has_noisy_layer(loaded->pairs(), precision);
  const auto make = [loaded, draws_in_layer,
                     batch](const NoiseLaw& law) -> std::unique_ptr<VotePass> {
    if (draws_in_layer && &law == &kFloatNoise) {
      return std::make_unique<NoisyLayerPass>(loaded, batch);
    }
    return std::make_unique<DevicePass>(loaded, batch);
  };
  return passes_of(loaded, make, batch, evaluator_of(*loaded));
}

VotePasses row_passes(const Model& model, Precision precision, int batch) {
  const auto loaded = std::make_shared<const DeviceModel>(model, precision);
  const auto make = [loaded, batch](const NoiseLaw&) {
    return std::make_unique<DevicePass>(loaded, batch);
  };
  return passes_of(loaded, make, batch, "rows");
}

BaseClassifier gpu_classifier(const Model& model, Precision precision) {
  return classifier_by(gpu_passes(model, precision, kGpuBatch));
}

BaseClassifier row_gpu_classifier(const Model& model, Precision precision, int batch) {
  return classifier_by(row_passes(model, precision, batch));
}

}  // namespace fedsmooth
