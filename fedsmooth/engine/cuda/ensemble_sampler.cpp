#include "fedsmooth/engine/cuda/ensemble_sampler.h"

#include <algorithm>
#include <climits>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cuda/kernels/wave/mean_logits.h"
#include "fedsmooth/engine/cuda/network_passes.h"
#include "fedsmooth/smoothing/mean_classifier.h"

namespace fedsmooth {
namespace {

// A point on a stream for which other streams can wait.
class Event {
 public:
  Event() {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "event"); }
  void hold(cudaStream_t stream) const {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Each member evaluates on its own stream; this pass's stream adds their logits in order.
class EnsemblePass : public VotePass {
 public:
  explicit EnsemblePass(std::vector<std::unique_ptr<VotePass>> members)
      : VotePass(members.front()->batch(), members.front()->input(), members.front()->classes()),
        members_(std::move(members)),
        mean_(int64_t{batch()} * classes()) {
    for (const auto& member : members_) {
      check(member->batch() == batch() && member->classes() == classes() &&
                member->input() == input(),
            "ensemble: a member has other images, classes or batches");
    }
    mean_.clear(launches_.stream());  // a short batch never writes some rows
  }

  ~EnsemblePass() override {
    // Members free memory that this stream may still read after an exception.
    cudaStreamSynchronize(launches_.stream());
  }

  DeviceLogits enqueue_images(const float* x) override {
    return add_up(batch(), [x](VotePass& member) { return member.enqueue_images(x); });
  }

  DeviceLogits enqueue_copies(const NoisyRows& rows) override {
    const int64_t used = std::min<int64_t>(rows.rows, rows.total - rows.begin);
    return add_up(used, [&rows](VotePass& member) { return member.enqueue_copies(rows); });
  }

 private:
  template <class Enqueue>
  DeviceLogits add_up(int64_t rows, const Enqueue& enqueue) {
    const auto count = static_cast<int>(members_.size());
    for (int i = 0; i < count; ++i) {
      VotePass& member = *members_[i];
      const DeviceLogits logits = enqueue(member);
      there_.record(member.launches().stream());
      there_.hold(launches_.stream());
      const LogitSum sum{logits.values, logits.stride, mean_.data(), rows, classes(), i, count};
      launches_.add("mean", add_logits(sum, launches_.stream()));
    }
    // A member's next evaluation overwrites its logits.
    added_.record(launches_.stream());
    for (const auto& member : members_) added_.hold(member->launches().stream());
    return {mean_.data(), classes()};
  }

  std::vector<std::unique_ptr<VotePass>> members_;
  DeviceArray<float> mean_;  // [batch, classes]
  Event there_, added_;
};

}  // namespace

VotePasses mean_passes(const std::vector<VotePasses>& members) {
  if (members.empty()) throw Error("mean of classifiers: the list is empty");
  const VotePasses& first = members.front();
  std::vector<std::string> descriptions;
  for (const VotePasses& member : members) {
    if (member.classes != first.classes) {
      throw Error("mean of classifiers: one has {} classes, another {}", first.classes,
                  member.classes);
    }
    if (member.batch != first.batch) {
      throw Error("mean of classifiers: {} evaluates {} images at a time, {} evaluates {}",
                  first.description, first.batch, member.description, member.batch);
    }
    descriptions.push_back(member.description);
  }
  VotePasses mean{{}, first.classes, first.batch, describe_mean(descriptions)};
  mean.make = [members](const NoiseLaw& law) -> std::unique_ptr<VotePass> {
    std::vector<std::unique_ptr<VotePass>> passes;
    for (const VotePasses& member : members) passes.push_back(member.make(law));
    return std::make_unique<EnsemblePass>(std::move(passes));
  };
  return mean;
}

BaseClassifier ensemble_gpu_classifier(const std::vector<Model>& folded) {
  int batch = INT_MAX;
  for (const Model& model : folded) batch = std::min(batch, fastest_batch(model));
  std::vector<VotePasses> members;
  for (const Model& model : folded) members.push_back(network_passes(model, batch));
  return classifier_by(mean_passes(members));
}

}  // namespace fedsmooth
