#include "fedsmooth/engine/cuda/graph_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// An image must fit into the shared memory of a thread block of batched_steps.cu.
constexpr int64_t kLargestImage = 12'000, kMostPairChannels = 8 * 1024;
constexpr int64_t kMostRowChannels = 64, kMostWidth = 64, kMostClasses = 1024;

template <typename... Values>
[[noreturn]] void refuse(const Stage& stage, fmt::format_string<Values...> why,
                         Values&&... values) {
  throw Refusal{fmt::format("stage {} {}", describe(stage),
                            fmt::format(why, std::forward<Values>(values)...))};
}

void check_images(const Network& network, Family family) {
  const auto [channels, height, width] = network.input;
  if (channels * height * width > kLargestImage ||
      (family == Family::kRows && (channels > kMostRowChannels || width > kMostWidth))) {
    throw Refusal{fmt::format("its images [{}] are too large", fmt::join(network.input, ", "))};
  }
}

void check_normalization(const std::vector<Stage>& stages) {
  if (stages.empty()) throw Refusal{"it has no layers"};
  if (stages[0].parts != Parts{Part::kNormalize}) {
    refuse(stages[0], "is not a normalisation alone");
  }
  const std::string why = normalization_refusal(stages);
  if (!why.empty()) throw Refusal{why};
}

void check_head(const std::vector<Stage>& stages, Family family) {
  const Stage& last = stages.back();
  if (last.parts != Parts{Part::kLinear}) refuse(last, "is not a linear layer alone, at the end");
  if (family != Family::kRows) return;
  if (stages.size() < 3) throw Refusal{"it has no convolution before a linear layer"};
  if (last.op->outputs > kMostClasses) {
    refuse(last, "has {} classes, more than {}", last.op->outputs, kMostClasses);
  }
}

// Throws a Refusal unless stage i continues a chain: it must be a product with ReLU and maxima or,
// after the first product, maxima alone.
void check_link(const std::vector<Stage>& stages, size_t i) {
  const Stage& stage = stages[i];
  const bool fits = stage.is_product() ? stage.op->outputs <= kMostPairChannels
                                       : i > 1 && stage.parts == Parts{Part::kMaxPool};
  if (stage.input == static_cast<int>(i) - 1 && fits) return;
  refuse(stage, "does not continue a chain of products of up to {} channels", kMostPairChannels);
}

void check_convolution(const std::vector<Stage>& stages, size_t i) {
  const Stage& stage = stages[i];
  if (!stage.is_op(Kind::kConv) && !stage.is_op(Kind::kSubsample)) {
    refuse(stage, "does not begin with a convolution");
  }
  const Layer& op = *stage.op;
  if (op.kernel != 1 && op.kernel != 3) {
    refuse(stage, "has a kernel of {0}x{0}, not 1x1 or 3x3", op.kernel);
  }
  if (op.stride > 2) refuse(stage, "has a stride of {}, more than 2", op.stride);
  if (op.padding >= op.kernel) {
    refuse(stage, "has padding of {}, as wide as its kernel", op.padding);
  }
  if (op.outputs > kMostRowChannels) {
    refuse(stage, "has {} channels, more than {}", op.outputs, kMostRowChannels);
  }
  if (stage.norm && !stage.is_op(Kind::kConv)) refuse(stage, "has a norm of a subsample");
  if (stage.norm && op.bias) refuse(stage, "has a norm of a convolution with a bias");
  const bool last = i + 2 == stages.size();
  if (last && !stage.pool) {
    refuse(stage, "does not end with the mean over all pixels, before a linear layer");
  }
  if (stage.pool && !last) refuse(stage, "takes the mean over all pixels before the end");
}

}  // namespace

void check_stages(const Network& network, const std::vector<Stage>& stages, Family family) {
  const bool pairs = family == Family::kPairs;
  const std::string parts = parts_refusal(stages, pairs ? kPairParts : kRowParts);
  if (!parts.empty()) throw Refusal{parts};
  check_images(network, family);
  check_normalization(stages);
  check_head(stages, family);
  for (size_t i = 1; i < stages.size(); ++i) {
    if (pairs) check_link(stages, i);
    if (!pairs && i + 1 < stages.size()) check_convolution(stages, i);
  }
}

void check_gradients(const GpuGraph& graph) {
  for (const GraphNode& made : graph.nodes) {
    int read = 0, added = 0;
    for (const GraphNode& node : graph.nodes) {
      read += node.input == made.output && node.op != GraphNode::Op::kLinear;
      added += node.shortcut == made.output;
    }
    if (added > 1 || (added == 1 && read == 0 && made.relu)) {
      throw Refusal{
          fmt::format("stage {}: what it gives is added where nothing else reads it", made.name)};
    }
  }
}

int fill_up(Family family, int64_t channels) {
  if (family == Family::kPairs) return static_cast<int>((channels + 15) / 16 * 16);
  return channels <= 16 ? 16 : channels <= 32 ? 32 : 64;
}

}  // namespace fedsmooth
