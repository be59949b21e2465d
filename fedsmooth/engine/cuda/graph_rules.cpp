#include "fedsmooth/engine/cuda/graph_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/row_stages.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// An image must fit into the shared memory of a thread block of batched_steps.cu.
constexpr int64_t kLargestImage = 12'000, kMostPairChannels = 8 * 1024;
constexpr int64_t kMostRowChannels = 2048, kMostWidth = 64, kMostKernel = 16, kMostClasses = 1024;
constexpr int kMostNarrowChannels = 64;  // of the kernels that are not wide, see GraphNode::wide

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
    throw Refusal{fmt::format(
        "its images [{}] are too large; they may have {} values, {} channels and {} columns",
        fmt::join(network.input, ", "), kLargestImage, kMostRowChannels, kMostWidth)};
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
  if (last.parts != Parts{Part::kLinear}) {
    refuse(last, "is the last stage, but not a linear layer alone");
  }
  if (family != Family::kRows) return;
  if (stages.size() < 3) throw Refusal{"it has no layer before the linear layer at its end"};
  if (last.op->outputs > kMostClasses) {
    refuse(last, "has {} classes, more than {}", last.op->outputs, kMostClasses);
  }
}

// Throws a Refusal unless stage i continues a chain: it must be a convolution or a linear layer,
// with or without ReLU and maxima, or maxima alone after the first of these.
void check_link(const std::vector<Stage>& stages, size_t i) {
  const Stage& stage = stages[i];
  const bool fits = stage.is_product() ? stage.op->outputs <= kMostPairChannels
                                       : i > 1 && stage.parts == Parts{Part::kMaxPool};
  if (stage.input == static_cast<int>(i) - 1 && fits) return;
  refuse(stage, "does not continue a chain of convolutions and linear layers of up to {} channels",
         kMostPairChannels);
}

void check_convolution(const Stage& stage) {
  const Layer& op = *stage.op;
  if (op.kernel > kMostKernel) {
    refuse(stage, "has a kernel of {0}x{0}, larger than {1}x{1}", op.kernel, kMostKernel);
  }
  if (op.stride > 2) refuse(stage, "has a stride of {}, more than 2", op.stride);
  if (op.padding >= op.kernel) {
    refuse(stage, "has padding of {0}, not less than its kernel of {1}x{1}", op.padding, op.kernel);
  }
  if (stage.norm && !stage.is_op(Kind::kConv)) refuse(stage, "has a norm behind a subsample");
}

// A linear layer becomes a convolution whose square kernel covers the map.
void check_hidden_linear(const Stage& stage) {
  const int64_t height = stage.in[1], width = stage.in[2];
  if (height != width) {
    refuse(stage, "reads a map of {}x{} pixels, which is not square", height, width);
  }
  if (height > kMostKernel) {
    refuse(stage, "reads a map of {0}x{0} pixels, larger than {1}x{1}", height, kMostKernel);
  }
}

// Throws a Refusal unless stage i, which is neither the first nor the last, can be a node.
void check_node(const std::vector<Stage>& stages, size_t i) {
  const Stage& stage = stages[i];
  if (stage.is_op(Kind::kLinear)) check_hidden_linear(stage);
  if (stage.is_op(Kind::kConv) || stage.is_op(Kind::kSubsample)) check_convolution(stage);
  if (stage.map[0] > kMostRowChannels) {
    refuse(stage, "has {} channels, more than {}", stage.map[0], kMostRowChannels);
  }
  if (stage.is_pool(Kind::kAvgPool) && !leaves_mean_to_end(stages, i) &&
      stage.map[1] != stage.map[2]) {
    refuse(
        stage,
        "takes the mean of a map of {}x{} pixels, which must be square unless only the last layer "
        "follows",
        stage.map[1], stage.map[2]);
  }
}

// Returns whether thread blocks of the current GPU hold the tiles of a convolution of at most 64
// channels and of its gradients. Without a GPU they are as large as on Hopper.
bool fits_blocks(const Stage& stage) {
  constexpr int kLargestBlock = 227 * 1024, kManyRows = 512;  // enough to fill any item
  const auto map_of = [](const Shape& shape) {
    return MapShape{static_cast<int>(shape[1]), static_cast<int>(shape[2]),
                    fill_up(Family::kRows, shape[0])};
  };
  RowConvolution c;
  c.rows = kManyRows;
  c.in = map_of(stage.in);
  c.out = map_of(stage.map);
  c.kernel = static_cast<int>(stage.op->kernel);
  c.stride = static_cast<int>(stage.op->stride);
  c.padding = static_cast<int>(stage.op->padding);
  const int limit = gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, kLargestBlock);
  return convolution_fits(c, limit) && convolution_fits(backward_of(c), limit) &&
         kernel_gradient_fits(c, limit);
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
    if (!pairs && i + 1 < stages.size()) check_node(stages, i);
  }
}

bool is_wide(const Stage& stage, bool among_wide) {
  if (!stage.is_op(Kind::kConv) && !stage.is_op(Kind::kSubsample)) return false;
  const int64_t kernel = stage.op->kernel;
  const int in = fill_up(Family::kRows, stage.in[0]), out = fill_up(Family::kRows, stage.map[0]);
  return (kernel != 1 && kernel != 3) || stage.parts.has(Part::kLinear) ||
         std::max(in, out) > kMostNarrowChannels ||
         (among_wide && std::min(in, out) == kMostNarrowChannels) || !fits_blocks(stage);
}

int fill_up(Family family, int64_t channels) {
  if (family == Family::kPairs) return static_cast<int>((channels + 15) / 16 * 16);
  if (channels > kMostNarrowChannels) return static_cast<int>((channels + 31) / 32 * 32);
  return channels <= 16 ? 16 : channels <= 32 ? 32 : kMostNarrowChannels;
}

}  // namespace fedsmooth
