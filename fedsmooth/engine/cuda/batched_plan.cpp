#include "fedsmooth/engine/cuda/batched_plan.h"

#include <fmt/format.h>

#include "fedsmooth/base/check.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// What a block of batched_steps.cu holds in shared memory.
constexpr int64_t kLargestImage = 12'000, kMostChannels = 8 * 1024;

int fill_up(int64_t channels) { return static_cast<int>((channels + 15) / 16 * 16); }

// A convolution of square windows on a grid of pixels, or of blocks.
struct Grid {
  int64_t height, width, out_height, out_width;
  int64_t taps, stride, padding;  // along an axis
};

void add_pairs(const Grid& grid, BatchedStage& stage) {
  stage.by_output.resize(grid.out_height * grid.out_width);
  stage.by_input.resize(grid.height * grid.width);
  stage.by_tap.resize(grid.taps * grid.taps);
  for (int64_t y = 0; y < grid.out_height; ++y) {
    for (int64_t x = 0; x < grid.out_width; ++x) {
      for (int64_t t = 0; t < grid.taps * grid.taps; ++t) {
        const int64_t row = y * grid.stride - grid.padding + t / grid.taps;
        const int64_t column = x * grid.stride - grid.padding + t % grid.taps;
        if (row < 0 || row >= grid.height || column < 0 || column >= grid.width) continue;
        const auto o = static_cast<int>(y * grid.out_width + x), tap = static_cast<int>(t);
        const auto i = static_cast<int>(row * grid.width + column);
        stage.by_output[o].push_back({i, tap});
        stage.by_input[i].push_back({o, tap});
        stage.by_tap[t].push_back({i, o});
      }
    }
  }
  stage.taps = static_cast<int>(grid.taps * grid.taps);
}

// Windows by output and, for the gradient, by input.
void add_windows(const Layer& layer, const Shape& in, const Shape& out, BatchedStage& stage) {
  const Grid grid{in[1], in[2], out[1], out[2], layer.kernel, layer.stride, 0};
  add_pairs(grid, stage);
}

// A linear layer: every pixel is an input of the one output, by a tap of its own.
void add_all_pixels(const Shape& in, BatchedStage& stage) {
  stage.taps = static_cast<int>(in[1] * in[2]);
  stage.by_output.resize(1);
  for (int i = 0; i < stage.taps; ++i) {
    stage.by_output[0].push_back({i, i});
    stage.by_input.push_back({{0, i}});
    stage.by_tap.push_back({{i, 0}});
  }
}

// Lays out one network. Stages are taken in order.
class Planner {
 public:
  Planner(const Network& network, BatchedPlan& plan) : network_(network), plan_(plan) {
    const Layer& normalize = network.layers[0];
    for (const double sd : normalize.sd) plan.scale.push_back(static_cast<float>(1 / sd));
    plan.mean.assign(normalize.mean.begin(), normalize.mean.end());
    plan.input = network.input;
  }

  void run() {
    const std::vector<Stage> stages = stages_of(network_);
    for (size_t i = 1; i < stages.size(); ++i) {
      shape_ = stages[i].in;
      if (stages[i].op) add_product(stages[i], i == 1);
      shape_ = stages[i].map;
      if (stages[i].pool) add_pool(*stages[i].pool);
    }
    plan_.classes = static_cast<int>(stages.back().out[0]);
    // Every client's vector starts on a line of the cache: it made products a third faster.
    plan_.size = (plan_.size + 63) / 64 * 64;
    plan_.real.resize(plan_.size);
    for (const int position : plan_.positions) plan_.real[position] = 1;
  }

 private:
  BatchedMap map_of(const Shape& shape) const {
    return {static_cast<int>(shape[1]), static_cast<int>(shape[2]), fill_up(shape[0])};
  }

  void add_pool(const Layer& layer) {
    BatchedStage stage;
    const Shape out = shape_after(layer, shape_);
    stage.is_pool = true;
    stage.pool2x2 =
        layer.kernel == 2 && layer.stride == 2 && shape_[1] % 2 == 0 && shape_[2] % 2 == 0;
    stage.relu = !plan_.stages.empty() && plan_.stages.back().relu;
    stage.in = map_of(shape_);
    stage.out = map_of(out);
    add_windows(layer, shape_, out, stage);
    plan_.stages.push_back(std::move(stage));
  }

  // Blocks of `block` x `block` pixels, starting in the padding, as pixels of the input map.
  void place_image(int64_t block, int64_t padding, int64_t width, int64_t height) {
    const auto [channels, rows, columns] = network_.input;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = padding; y < rows + padding; ++y) {
        for (int64_t x = padding; x < columns + padding; ++x) {
          const bool used = y / block < height && x / block < width;
          plan_.pixel.push_back(used ? static_cast<int>(y / block * width + x / block) : -1);
          plan_.channel.push_back(static_cast<int>((c * block + y % block) * block + x % block));
        }
      }
    }
  }

  void add_product(const Stage& of, bool first) {
    const Layer& layer = *of.op;
    const Shape& out = of.map;
    BatchedStage stage;
    stage.relu = of.is_activation(Kind::kRelu);
    stage.in = map_of(shape_);
    stage.out = map_of(out);
    const bool linear = layer.kind == Kind::kLinear;
    const int64_t kernel = linear ? 1 : layer.kernel;
    const int64_t block = first && !linear ? layer.stride : 1;
    if (first && !linear) {
      const int64_t taps = (kernel + block - 1) / block;
      const int64_t height = out[1] + taps - 1, width = out[2] + taps - 1;
      stage.in = {static_cast<int>(height), static_cast<int>(width),
                  fill_up(shape_[0] * block * block)};
      stage.masked = kernel % block != 0;
      add_pairs({height, width, out[1], out[2], taps, 1, 0}, stage);
      place_image(block, layer.padding, width, height);
    } else if (linear) {
      add_all_pixels(shape_, stage);
      if (first) place_image(1, 0, shape_[2], shape_[1]);
    } else {
      add_pairs({shape_[1], shape_[2], out[1], out[2], kernel, layer.stride, layer.padding}, stage);
    }
    place_weights(layer, stage, block);
    plan_.stages.push_back(std::move(stage));
  }

  // Positions of a kernel [K, C, k, k] (a linear layer: [K, C, H, W]) and its bias.
  void place_weights(const Layer& layer, BatchedStage& stage, int64_t block) {
    const bool linear = layer.kind == Kind::kLinear;
    const int64_t height = linear ? shape_[1] : layer.kernel;
    const int64_t width = linear ? shape_[2] : layer.kernel;
    const int64_t row = (width + block - 1) / block;  // taps in a row
    stage.has_bias = layer.bias;
    stage.kernel = plan_.size;
    plan_.size += int64_t{stage.taps} * stage.in.channels * stage.out.channels;
    stage.bias = plan_.size;
    plan_.size += stage.out.channels;
    for (int64_t k = 0; k < layer.outputs; ++k) {
      for (int64_t c = 0; c < shape_[0]; ++c) {
        for (int64_t y = 0; y < height; ++y) {
          for (int64_t x = 0; x < width; ++x) {
            const int64_t tap = y / block * row + x / block;
            const int64_t channel = (c * block + y % block) * block + x % block;
            plan_.positions.push_back(static_cast<int>(
                stage.kernel + (tap * stage.in.channels + channel) * stage.out.channels + k));
          }
        }
      }
    }
    for (int64_t k = 0; layer.bias && k < layer.outputs; ++k) {
      plan_.positions.push_back(static_cast<int>(stage.bias + k));
    }
  }

  const Network& network_;
  BatchedPlan& plan_;
  Shape shape_;
};

// A link of a chain: a product with its ReLU and maxima, or, after the first one, maxima alone.
bool is_link(const Stage& stage, size_t index) {
  if (stage.input != static_cast<int>(index) - 1) return false;
  if (stage.is_product()) return stage.op->outputs <= kMostChannels;
  return index > 1 && stage.parts == Parts{Part::kMaxPool};
}

}  // namespace

int count_pairs(const PairLists& lists) {
  size_t count = 0;
  for (const std::vector<Pair>& list : lists) count += list.size();
  return static_cast<int>(count);
}

std::string BatchedPlan::refusal(const Network& network) {
  const std::vector<Stage> stages = stages_of(network);
  if (const std::string why = parts_refusal(stages, kParts); !why.empty()) return why;
  if (stages.size() < 2 || stages[0].parts != Parts{Part::kNormalize}) {
    return "it does not begin with a normalisation alone";
  }
  const int64_t size = network.input[0] * network.input[1] * network.input[2];
  if (size > kLargestImage) {
    return fmt::format("its images have {} values, more than {}", size, kLargestImage);
  }
  for (size_t i = 1; i < stages.size(); ++i) {
    if (!is_link(stages[i], i)) {
      return fmt::format("stage {} does not continue a chain of products of up to {} channels",
                         describe(stages[i]), kMostChannels);
    }
  }
  const Stage& last = stages.back();
  if (last.parts == Parts{Part::kLinear}) return {};
  return fmt::format("stage {} is not a linear layer at the end", describe(last));
}

BatchedPlan::BatchedPlan(const Network& network) {
  const std::string why = refusal(network);
  check(why.empty(), "BatchedPlan: network {}: {}", network.name, why);
  Planner(network, *this).run();
}

}  // namespace fedsmooth
