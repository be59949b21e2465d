#include "fedsmooth/engine/cuda/residual_sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/engine/cuda/residual_plan.h"
#include "fedsmooth/engine/cuda/residual_weights.h"

namespace fedsmooth {
namespace {

constexpr Shape kImage = {residual::kImageChannels, residual::kImageSide, residual::kImageSide};
constexpr int kLast = residual::kStages - 1;

void append(std::vector<uint4>& to, const std::vector<uint4>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

std::vector<float> values_of(const Array& a) { return {a.floats(), a.floats() + a.count()}; }

// Owns a planned network's packed weights on the GPU.
class ResidualModel {
 public:
  explicit ResidualModel(const ResidualPlan& plan) {
    votes_.stem.weights = keep(pack_stem(plan.stem));
    votes_.stem.bias = keep(values_of(plan.stem.bias));
    std::copy(plan.mean.begin(), plan.mean.end(), votes_.stem.mean);
    std::copy(plan.scale.begin(), plan.scale.end(), votes_.stem.scale);
    for (int stage = 0; stage <= kLast; ++stage) {
      const PlannedStage& planned = plan.stages[stage];
      votes_.layers[stage] = keep_layers(planned.layers, stage);
      if (stage < kLast) votes_.next[stage] = keep_transition(planned);
    }
    votes_.head = {keep(values_of(plan.linear)), keep(values_of(plan.linear_bias)), plan.classes};
    check_cuda(cudaStreamSynchronize(nullptr), "weights");
  }

  // Returns the arguments of the launches, without rows and maps.
  const ResidualVotes& votes() const { return votes_; }
  int classes() const { return votes_.head.classes; }

 private:
  const uint4* keep(const std::vector<uint4>& values) {
    return packed_.emplace_back(values).data();
  }
  const float* keep(const std::vector<float>& values) {
    return floats_.emplace_back(values).data();
  }

  residual::LayerList keep_layers(const std::vector<PlannedConv>& convs, int stage) {
    std::vector<uint4> weights;
    std::vector<float> biases;
    for (const PlannedConv& conv : convs) {
      append(weights, stage == kLast ? pack_for_warpgroup(conv) : pack_for_warp(conv));
      const std::vector<float> bias = values_of(conv.bias);
      biases.insert(biases.end(), bias.begin(), bias.end());
    }
    return {keep(weights), keep(biases), static_cast<int>(convs.size())};
  }

  residual::Transition keep_transition(const PlannedStage& stage) {
    return {keep(pack_for_warp(stage.enter)), keep(pack_for_warp(stage.shortcut)),
            keep(values_of(stage.enter.bias)), keep(values_of(stage.shortcut.bias))};
  }

  ResidualVotes votes_;
  std::vector<DeviceArray<uint4>> packed_;
  std::vector<DeviceArray<float>> floats_;
};

using SharedModel = std::shared_ptr<const ResidualModel>;

// Runs the three launches. It owns the maps between stages.
class ResidualPass : public VotePass {
 public:
  ResidualPass(SharedModel model, int batch)
      : VotePass(batch, kImage, model->classes()),
        model_(std::move(model)),
        votes_(model_->votes()),
        logits_(int64_t{batch} * classes()) {
    const int64_t rows = (batch + 3) / 4 * 4;  // the last stage computes four rows at a time
    for (int stage = 0; stage < kLast; ++stage) {
      const int64_t side = residual::side_of(stage + 1);
      const int64_t words = rows * residual::channels_of(stage + 1) / 2 * side * side;
      residual::Transition& next = votes_.next[stage];
      for (uint32_t** map : {&next.h, &next.x}) {
        maps_.emplace_back(words).clear(launches_.stream());
        *map = maps_.back().data();
      }
    }
    std::vector<NoisyCopies> single(batch);
    for (int i = 0; i < batch; ++i) single[i].first = single[i].image = i;
    single_ = DeviceArray<NoisyCopies>(single);
    check_cuda(cudaStreamSynchronize(nullptr), "images");
  }

  // Evaluates images as copies with a sigma of zero, one of each image.
  DeviceLogits enqueue_images(const float* x) override {
    NoisyRows rows;
    rows.copies = single_.data();
    rows.requests = rows.rows = batch();
    rows.total = batch();
    rows.x = x;
    return enqueue_copies(rows);
  }

  DeviceLogits enqueue_copies(const NoisyRows& rows) override {
    enqueue(rows, nullptr, logits_.data());
    return {logits_.data(), classes()};
  }

  // The last launch counts votes itself.
  void vote(const NoisyRows& rows, VoteCounter* counts) override { enqueue(rows, counts, nullptr); }

 private:
  void enqueue(const NoisyRows& rows, VoteCounter* counts, float* logits) {
    votes_.rows = rows;
    votes_.counts = counts;
    votes_.logits = logits;
    launches_.add("votes", count_residual_votes(votes_, launches_.stream()));
  }

  SharedModel model_;
  ResidualVotes votes_;
  DeviceArray<float> logits_;
  DeviceArray<NoisyCopies> single_;
  std::vector<DeviceArray<uint32_t>> maps_;
};

}  // namespace

VotePasses residual_vote_passes(const Model& folded, int batch) {
  const auto model = std::make_shared<const ResidualModel>(plan_residual(folded));
  const auto make = [model, batch](const NoiseLaw&) {
    return std::make_unique<ResidualPass>(model, batch);
  };
  return {make, model->classes(), batch,
          fmt::format("cuda/bf16/hopper-residualx{}/{}", batch, gpu_name())};
}

BaseClassifier residual_gpu_classifier(const Model& folded, int batch) {
  return classifier_by(residual_vote_passes(folded, batch));
}

}  // namespace fedsmooth
