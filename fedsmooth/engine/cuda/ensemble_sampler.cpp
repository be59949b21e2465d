#include "fedsmooth/engine/cuda/ensemble_sampler.h"

#include <algorithm>
#include <climits>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cuda/kernels/wave/mean_logits.h"
#include "fedsmooth/engine/cuda/network_passes.h"
#include "fedsmooth/smoothing/group_classifier.h"
#include "fedsmooth/smoothing/mean_classifier.h"

namespace fedsmooth {
namespace {

// A point on a stream that other streams wait for.
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

// How a member's logits are joined with those of the members before it.
using Join = cudaError_t (*)(const MemberLogits& logits, cudaStream_t stream);

// Members evaluate on streams of their own; this pass's stream joins their logits in order.
class EnsemblePass : public VotePass {
 public:
  /// A row of the joined logits has `width` values.
  EnsemblePass(std::vector<std::unique_ptr<VotePass>> members, Join join, int width)
      : VotePass(members.front()->batch(), members.front()->input(), width),
        members_(std::move(members)),
        join_(join),
        joined_(int64_t{batch()} * width) {
    const VotePass& first = *members_.front();
    for (const auto& member : members_) {
      check(member->batch() == batch() && member->classes() == first.classes() &&
                member->input() == input(),
            "ensemble: a member has other images, classes or batches");
    }
    joined_.clear(launches_.stream());  // of a short batch some rows are never written
  }

  ~EnsemblePass() override {
    // Members free their memory, which this stream may still read after an exception.
    cudaStreamSynchronize(launches_.stream());
  }

  DeviceLogits enqueue_images(const float* x) override {
    return join_all(batch(), [x](VotePass& member) { return member.enqueue_images(x); });
  }

  DeviceLogits enqueue_copies(const NoisyRows& rows) override {
    const int64_t used = std::min<int64_t>(rows.rows, rows.total - rows.begin);
    return join_all(used, [&rows](VotePass& member) { return member.enqueue_copies(rows); });
  }

 private:
  template <class Enqueue>
  DeviceLogits join_all(int64_t rows, const Enqueue& enqueue) {
    const auto count = static_cast<int>(members_.size());
    for (int i = 0; i < count; ++i) {
      VotePass& member = *members_[i];
      const DeviceLogits logits = enqueue(member);
      there_.record(member.launches().stream());
      there_.hold(launches_.stream());
      const MemberLogits own{
          logits.values, logits.stride, joined_.data(), rows, member.classes(), i, count};
      launches_.add("join", join_(own, launches_.stream()));
    }
    // A member's next evaluation overwrites its logits.
    taken_.record(launches_.stream());
    for (const auto& member : members_) taken_.hold(member->launches().stream());
    return {joined_.data(), classes()};
  }

  std::vector<std::unique_ptr<VotePass>> members_;
  Join join_;
  DeviceArray<float> joined_;  // [batch, width]
  Event there_, taken_;
};

void check_alike(const std::vector<VotePasses>& members, const std::string& what) {
  if (members.empty()) throw Error("{}: the list is empty", what);
  const VotePasses& first = members.front();
  for (const VotePasses& member : members) {
    if (member.groups > 0) throw Error("{}: {} is several groups", what, member.description);
    if (member.classes != first.classes) {
      throw Error("{}: one has {} classes, another {}", what, first.classes, member.classes);
    }
    if (member.batch != first.batch) {
      throw Error("{}: {} evaluates {} images at a time, {} evaluates {}", what, first.description,
                  first.batch, member.description, member.batch);
    }
  }
}

std::vector<std::string> descriptions_of(const std::vector<VotePasses>& members) {
  std::vector<std::string> descriptions;
  for (const VotePasses& member : members) descriptions.push_back(member.description);
  return descriptions;
}

MakePass make_joined(const std::vector<VotePasses>& members, Join join, int width) {
  return [members, join, width](const NoiseLaw& law) -> std::unique_ptr<VotePass> {
    std::vector<std::unique_ptr<VotePass>> passes;
    for (const VotePasses& member : members) passes.push_back(member.make(law));
    return std::make_unique<EnsemblePass>(std::move(passes), join, width);
  };
}

// All evaluate batches of the size that is best for the one with the smallest.
std::vector<VotePasses> passes_of(const std::vector<Model>& folded) {
  int batch = INT_MAX;
  for (const Model& model : folded) batch = std::min(batch, fastest_batch(model));
  std::vector<VotePasses> members;
  for (const Model& model : folded) members.push_back(network_passes(model, batch));
  return members;
}

}  // namespace

VotePasses mean_passes(const std::vector<VotePasses>& members) {
  check_alike(members, "mean of classifiers");
  const VotePasses& first = members.front();
  return {make_joined(members, add_logits, first.classes), first.classes, first.batch,
          describe_mean(descriptions_of(members))};
}

VotePasses group_passes(const std::vector<VotePasses>& members) {
  check_alike(members, "groups");
  const VotePasses& first = members.front();
  const auto groups = static_cast<int>(members.size());
  if (groups < 2 || groups > kMaxGroups) {
    throw Error("groups: {} networks; there must be from 2 to {}", groups, kMaxGroups);
  }
  return {make_joined(members, place_logits, groups * first.classes), first.classes, first.batch,
          describe_groups(descriptions_of(members)), groups};
}

BaseClassifier ensemble_gpu_classifier(const std::vector<Model>& folded) {
  return classifier_by(mean_passes(passes_of(folded)));
}

BaseClassifier group_gpu_classifier(const std::vector<Model>& folded) {
  return classifier_by(group_passes(passes_of(folded)));
}

}  // namespace fedsmooth
