#include "fedsmooth/model/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedsmooth/model/network_json.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// Parts in the order in which a stage applies them.
enum class Part { kOp, kNorm, kSum, kRelu, kPool, kDropout, kNone };

Part part_of(Kind kind) {
  switch (kind) {
    case Kind::kNormalize:
    case Kind::kConv:
    case Kind::kLinear:
    case Kind::kSubsample:
      return Part::kOp;
    case Kind::kBatchNorm:
    case Kind::kGroupNorm:
      return Part::kNorm;
    case Kind::kResidual:
      return Part::kSum;
    case Kind::kRelu:
      return Part::kRelu;
    case Kind::kMaxPool:
    case Kind::kAvgPool:
      return Part::kPool;
    case Kind::kDropout:
      return Part::kDropout;
  }
  throw std::logic_error("stages_of: unknown kind of layer");
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
    Part last = Part::kNone;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      const std::string name = layer.name.empty() ? fmt::format("{}{}", path, i) : layer.name;
      const Part part = part_of(layer.kind);
      if (part == Part::kSum) {
        input = lower_block(layer, name, input, shape);
        last = Part::kSum;
      } else {
        if (part <= last) input = open(name, input, shape);
        add(layer, part);
        last = part;
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

  void add(const Layer& layer, Part part) {
    Stage& stage = stages.back();
    const Shape shape = shape_after(layer, stage.out);
    stage.out = shape;
    if (part != Part::kPool && part != Part::kDropout) stage.map = shape;
    switch (part) {
      case Part::kOp:
        stage.op = layer;
        stage.op_tensor = met_.tensors;
        break;
      case Part::kNorm:
        stage.norm = layer;
        stage.norm_tensor = met_.tensors;
        break;
      case Part::kRelu:
        stage.relu = true;
        break;
      case Part::kPool:
        stage.pool = layer;
        break;
      default:
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
    const bool open_to_sum = body != input && !stages[body].saved && !stages[body].relu &&
                             !stages[body].pool && !stages[body].dropout;
    if (!open_to_sum) body = open(path, body, body == Stage::kImages ? shape : stages[body].out);
    stages[body].saved = saved;
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
  std::vector<std::string> parts;
  if (stage.op) parts.push_back(kind_name(stage.op->kind));
  if (stage.norm) parts.push_back(kind_name(stage.norm->kind));
  if (stage.saved) parts.push_back("sum");
  if (stage.relu) parts.push_back(kind_name(Kind::kRelu));
  if (stage.pool) parts.push_back(kind_name(stage.pool->kind));
  if (stage.dropout) parts.push_back(kind_name(stage.dropout->kind));
  return fmt::format("{} ({})", stage.name, fmt::join(parts, ", "));
}

}  // namespace fedsmooth
