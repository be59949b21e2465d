#include "fedsmooth/engine/cuda/residual_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedsmooth/base/check.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

struct Refusal {
  std::string why;
};

// The exact form that a convolution's stage must have. A stage with more or fewer parts is refused.
struct Form {
  int kernel, stride, outputs;
  int input;                 // index of the stage that it reads
  std::optional<int> saved;  // index of the stage that it adds
  bool relu = true;
  bool may_end = false;  // whether the mean over all pixels may follow

  Parts parts() const {
    Parts found = {Part::kConv};
    if (saved) found = found | Parts{Part::kSum};
    if (relu) found = found | Parts{Part::kRelu};
    return found;
  }

  bool fits(const Stage& stage) const {
    const Parts at_end = may_end ? parts() | Parts{Part::kAvgPool} : parts();
    return (stage.parts == parts() || stage.parts == at_end) && stage.op->kernel == kernel &&
           stage.op->stride == stride && stage.op->padding == kernel / 2 &&
           stage.op->outputs == outputs && stage.input == input && stage.saved == saved;
  }

  std::string text() const {
    return fmt::format("a {0}x{0} convolution with stride {1} to {2} channels{3}{4}", kernel,
                       stride, outputs, saved ? ", the block's sum" : "", relu ? ", a ReLU" : "");
  }
};

// Plans a network by going through its stages, or throws a Refusal. Without weights it only finds
// out whether the network can be planned.
class Planner {
 public:
  Planner(const Network& network, const Weights* weights, ResidualPlan& plan)
      : network_(network), stages_(stages_of(network)), weights_(weights), plan_(plan) {}

  void run() {
    const Shape input = {residual::kImageChannels, residual::kImageSide, residual::kImageSide};
    if (network_.input != input) {
      throw Refusal{fmt::format("its images are [{}], not [{}]", fmt::join(network_.input, ", "),
                                fmt::join(input, ", "))};
    }
    add_normalization();
    plan_.stem = take({3, 1, residual::channels_of(0), 0, {}}, residual::kImageChannels);
    bool ended = false;  // whether the last block ended with the mean over all pixels
    while (!ended && (next_ < stages_.size() && !stages_[next_].is_op(Kind::kLinear))) {
      add_block();
      ended = stages_[next_ - 1].pool.has_value();
    }
    if (stage_ + 1 < residual::kStages || layer_list(0).empty()) {
      refuse("a residual block: there must be three stages of them");
    }
    if (!ended) refuse("the mean over all pixels, before the linear layer");
    add_linear();
    if (next_ < stages_.size()) refuse("the last: nothing may follow the linear layer");
  }

 private:
  std::vector<PlannedConv>& layer_list(int stage) { return plan_.stages[stage].layers; }

  [[noreturn]] void refuse(const std::string& expected) const {
    if (next_ == stages_.size()) {
      throw Refusal{fmt::format("it ends where {} has to be", expected)};
    }
    throw Refusal{fmt::format("stage {} is not {}", describe(stages_[next_]), expected)};
  }

  void add_normalization() {
    if (stages_.empty() || stages_[0].parts != Parts{Part::kNormalize}) {
      refuse("a normalisation alone");
    }
    const Layer& normalize = *stages_[next_++].op;
    plan_.mean.assign(normalize.mean.begin(), normalize.mean.end());
    for (const double sd : normalize.sd) plan_.scale.push_back(static_cast<float>(1 / sd));
  }

  PlannedConv take(const Form& form, int in) {
    if (next_ == stages_.size() || !form.fits(stages_[next_])) refuse(form.text());
    const Stage& stage = stages_[next_++];
    PlannedConv conv{stage.op->name, in, form.outputs, form.kernel, {}, {}};
    take_weights(stage, conv.weight, conv.bias);
    return conv;
  }

  // A shortcut's stage comes before the body's.
  void add_block() {
    const int x = static_cast<int>(next_) - 1;
    const Stage& first_stage = stages_[next_];
    const bool enters = first_stage.is_op(Kind::kSubsample) ||
                        (first_stage.is_op(Kind::kConv) && first_stage.op->kernel == 1);
    if (enters && (stage_ + 1 == residual::kStages || layer_list(0).empty())) {
      refuse("a convolution that keeps the shape");
    }
    const int before = residual::channels_of(stage_);
    int saved = x;
    if (enters) {
      saved = static_cast<int>(next_);
      plan_.stages[stage_].shortcut = take_shortcut(x, before);
      ++stage_;
    }
    const int channels = residual::channels_of(stage_);
    PlannedConv first = take({3, enters ? 2 : 1, channels, x, {}}, before);
    if (enters) {
      plan_.stages[stage_ - 1].enter = std::move(first);
    } else {
      layer_list(stage_).push_back(std::move(first));
    }
    const int h = static_cast<int>(next_) - 1;
    layer_list(stage_).push_back(
        take({3, 1, channels, h, saved, /*relu=*/true, /*may_end=*/true}, channels));
  }

  PlannedConv take_shortcut(int x, int in) {
    const Stage& stage = stages_[next_];
    if (!stage.is_op(Kind::kSubsample)) return take({1, 2, 2 * in, x, {}, /*relu=*/false}, in);
    const bool fits = stage.parts == Parts{Part::kSubsample} && stage.op->stride == 2 &&
                      stage.op->outputs == 2 * in && stage.input == x;
    if (!fits) refuse(fmt::format("every second pixel in {} channels", 2 * in));
    ++next_;
    return subsampling(in);
  }

  void add_linear() {
    if (next_ == stages_.size()) refuse("a linear layer");
    const Stage& stage = stages_[next_];
    if (stage.parts != Parts{Part::kLinear}) refuse("a linear layer at the end");
    if (stage.op->outputs > residual::kMaxClasses) {
      throw Refusal{fmt::format("stage {} has {} classes, more than {}", describe(stage),
                                stage.op->outputs, residual::kMaxClasses)};
    }
    ++next_;
    plan_.classes = static_cast<int>(stage.op->outputs);
    take_weights(stage, plan_.linear, plan_.linear_bias);
  }

  void take_weights(const Stage& stage, Array& weight, Array& bias) {
    if (weights_ == nullptr) return;
    weight = weights_->at(stage.op_tensor);
    bias = stage.op->bias ? weights_->at(stage.op_tensor + 1) : Array({stage.op->outputs});
  }

  const Network& network_;
  std::vector<Stage> stages_;
  const Weights* weights_;
  ResidualPlan& plan_;
  int stage_ = 0;    // index of the plan's stage
  size_t next_ = 0;  // index of the network's next stage
};

}  // namespace

PlannedConv subsampling(int in) {
  PlannedConv conv{"", in, 2 * in, 1, Array({2 * in, in, 1, 1}), Array({2 * in})};
  for (int c = 0; c < in; ++c) conv.weight.floats()[c * in + c] = 1;
  return conv;
}

std::string residual_refusal(const Network& folded) {
  try {
    ResidualPlan plan;
    Planner(folded, nullptr, plan).run();
  } catch (const Refusal& refusal) {
    return refusal.why;
  }
  return {};
}

ResidualPlan plan_residual(const Model& folded) {
  const std::string refusal = residual_refusal(folded.network);
  check(refusal.empty(), "plan_residual: network {}: {}", folded.network.name, refusal);
  ResidualPlan plan;
  Planner(folded.network, &folded.weights, plan).run();
  return plan;
}

}  // namespace fedsmooth
