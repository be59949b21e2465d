#include "fedsmooth/model/stages.h"

#include <fmt/format.h>

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// Parts that a stage computes before it adds its saved map.
constexpr Parts kBeforeSum = {Part::kNormalize, Part::kConv,      Part::kStandardize, Part::kLinear,
                              Part::kSubsample, Part::kBatchNorm, Part::kGroupNorm};

// The members of a stage in the order in which it applies them.
enum class Slot { kOp, kNorm, kSum, kActivation, kPool, kDropout, kNone };

Slot slot_of(Kind kind) {
  switch (kind) {
    case Kind::kNormalize:
    case Kind::kConv:
    case Kind::kLinear:
    case Kind::kSubsample:
      return Slot::kOp;
    case Kind::kBatchNorm:
    case Kind::kGroupNorm:
      return Slot::kNorm;
    case Kind::kResidual:
      return Slot::kSum;
    case Kind::kRelu:
    case Kind::kLeakyRelu:
    case Kind::kSilu:
    case Kind::kGelu:
      return Slot::kActivation;
    case Kind::kMaxPool:
    case Kind::kAvgPool:
      return Slot::kPool;
    case Kind::kDropout:
      return Slot::kDropout;
  }
  throw Bug("stages_of: unknown kind of layer");
}

// What a forward pass in the order of parameters() has met so far.
struct Met {
  size_t tensors = 0;
  uint32_t dropouts = 0;

  void add(const std::vector<Layer>& layers) {
    for (const Layer& layer : layers) {
      tensors += count_tensors(layer);
      dropouts += layer.kind == Kind::kDropout;
      add(layer.body);
      add(layer.shortcut);
    }
  }
};

class Lowering {
 public:
  std::vector<Stage> stages;

  // Lowers layers that read the map `input`. Returns the index of the stage that gives theirs.
  int lower(const std::vector<Layer>& layers, const std::string& path, int input, Shape shape) {
    // A map that others may read is never written to: the first layer opens a stage.
    Slot last = Slot::kNone;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      const std::string name = layer.name.empty() ? fmt::format("{}{}", path, i) : layer.name;
      const Slot slot = slot_of(layer.kind);
      if (slot == Slot::kSum) {
        input = lower_block(layer, name, input, shape);
        last = Slot::kSum;
      } else {
        if (slot <= last) input = open(name, input, shape);
        add(layer, slot);
        last = slot;
      }
      shape = stages.back().out;
    }
    return input;
  }

 private:
  int open(const std::string& name, int input, const Shape& in) {
    Stage stage;
    stage.name = name;
    stage.input = input;
    stage.in = stage.map = stage.out = in;
    stages.push_back(std::move(stage));
    return static_cast<int>(stages.size()) - 1;
  }

  void add(const Layer& layer, Slot slot) {
    Stage& stage = stages.back();
    stage.parts = stage.parts | parts_of(layer);
    stage.out = shape_after(layer, stage.out);
    if (slot < Slot::kPool) stage.map = stage.out;
    if (slot == Slot::kOp) {
      stage.op = layer;
      stage.op_tensor = met_.tensors;
    } else if (slot == Slot::kNorm) {
      stage.norm = layer;
      stage.norm_tensor = met_.tensors;
    } else if (slot == Slot::kActivation) {
      stage.activation = layer;
    } else if (slot == Slot::kPool) {
      stage.pool = layer;
    } else {
      stage.dropout = layer;
      stage.dropout_sample = met_.dropouts;
    }
    met_.add({layer});
  }

  // The shortcut's stages come first, though parameters() has the body's tensors first: the body's
  // last stage can then add what the shortcut gave.
  int lower_block(const Layer& block, const std::string& path, int input, const Shape& shape) {
    const Met before = met_;
    met_.add(block.body);
    const int saved = lower(block.shortcut, path + ".shortcut.", input, shape);
    const Met after = met_;
    met_ = before;
    int body = lower(block.body, path + ".body.", input, shape);
    met_ = after;
    const bool open_to_sum = body != input && (stages[body].parts - kBeforeSum).empty();
    if (!open_to_sum) body = open(path, body, body == Stage::kImages ? shape : stages[body].out);
    stages[body].saved = saved;
    stages[body].parts = stages[body].parts | parts_of(block);
    return body;
  }

  Met met_;
};

}  // namespace

std::vector<Stage> stages_of(const Network& network) {
  parameters(network);  // do the layers fit together?
  Lowering lowering;
  lowering.lower(network.layers, "", Stage::kImages, network.input);
  return std::move(lowering.stages);
}

std::string describe(const Stage& stage) {
  return fmt::format("{} ({})", stage.name, to_string(stage.parts));
}

std::string parts_refusal(const std::vector<Stage>& stages, Parts taken) {
  for (const Stage& stage : stages) {
    const Parts others = stage.parts - taken;
    if (others.empty()) continue;
    return fmt::format("stage {} has {}, which this engine does not compute", describe(stage),
                       to_string(others));
  }
  return {};
}

std::string normalization_refusal(const std::vector<Stage>& stages) {
  if (stages.empty()) return "it has no layers";
  for (size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    const bool first = i == 0;
    const bool fits = stage.is_op(Kind::kNormalize) == first &&
                      (stage.input == Stage::kImages) == first && stage.saved != Stage::kImages;
    if (fits) continue;
    return fmt::format("stage {}: the first stage, and no other, has to normalise the images",
                       describe(stage));
  }
  return {};
}

}  // namespace fedsmooth
