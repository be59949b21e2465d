#include "fedsmooth/engine/cpu/fast_network.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;
using PlacedStep = FastNetwork::PlacedStep;

// The largest map of a part should stay in the last-level cache.
constexpr int64_t kMapFloats = 1 << 20;

int64_t size_of(const Shape& shape) { return shape[0] * shape[1] * shape[2]; }

// Weights are read again for every part, which costs more than it saves where they are larger than
// the maps.
int64_t images_in_part(const std::vector<Stage>& stages, const Weights& weights, int64_t batch) {
  int64_t map = 1, weight = 0;
  for (const Stage& stage : stages) map = std::max({map, size_of(stage.in), size_of(stage.map)});
  for (const Array& w : weights) weight += w.count();
  if (weight > batch * map) return batch;
  int64_t part = std::clamp<int64_t>(kMapFloats / map, 1, batch);
  while (batch % part != 0) --part;
  return part;
}

// Returns the operations between a stage's norm and its pool: the sum and the activation.
FastEnd end_of(const Stage& stage) {
  const bool relu = stage.is_activation(Kind::kRelu);
  return {stage.saved.has_value(), relu, /*pool=*/false, relu ? std::nullopt : stage.activation};
}

// Turns stages into steps.
class Builder {
 public:
  Builder(const std::vector<Stage>& stages, const Weights& weights, int64_t images)
      : stages_(stages), weights_(weights), images_(images), blocks_(first_blocks()) {}

  std::vector<PlacedStep> run() {
    std::vector<int> results;  // the step that gives each stage's output
    for (const Stage& stage : stages_) {
      const int x = results.empty() ? FastNetwork::kImages : results[stage.input];
      const int saved = stage.saved ? results[*stage.saved] : FastNetwork::kNone;
      results.push_back(stage.is_product() ? add_product(stage, x, saved)
                                           : add_others(stage, x, saved));
    }
    return std::move(steps_);
  }

 private:
  // The blocks of a strided convolution that alone reads the normalised images, if a scheme fits.
  std::optional<ToeplitzShape> first_blocks() const {
    const Stage& first = stages_.front();
    const bool bare = (first.parts - Parts{Part::kNormalize, Part::kDropout}).empty();
    if (!bare || stages_.size() < 2) return {};
    for (size_t i = 2; i < stages_.size(); ++i) {
      if (stages_[i].input == 0 || stages_[i].saved == 0) return {};
    }
    const Stage& next = stages_[1];
    if (!next.is_op(Kind::kConv) || next.op->stride == 1 || next.saved) return {};
    return toeplitz_shape(*next.op, next.in);
  }

  int add(FastStep step, int x, int saved = FastNetwork::kNone) {
    steps_.push_back({std::move(step), x, saved});
    return static_cast<int>(steps_.size()) - 1;
  }

  // Without a norm and without an activation other than ReLU, the sum and the ReLU are the
  // product's, and so is pooling where a scheme's tiles are whole windows.
  int add_product(const Stage& stage, int x, int saved) {
    const Layer& layer = *stage.op;
    const Array& weight = weights_[stage.op_tensor];
    const Array bias = layer.bias ? weights_[stage.op_tensor + 1] : Array({layer.outputs});
    const bool fuses = !stage.norm && (!stage.activation || stage.is_activation(Kind::kRelu));
    FastEnd end;
    if (fuses) end = end_of(stage);
    const bool first = &stage == &stages_.front() + 1;
    const auto scheme = layer.kind != Kind::kConv ? std::nullopt
                        : layer.stride == 1       ? toeplitz_shape(layer, stage.in)
                        : first                   ? blocks_
                                                  : std::nullopt;
    end.pool = scheme && fuses && !stage.saved && stage.is_pool(Kind::kMaxPool) &&
               stage.pool->kernel == 2 && stage.pool->stride == 2;
    const int fused = fuses ? saved : FastNetwork::kNone;
    if (layer.kind == Kind::kLinear) {
      x = add(linear_step(layer, stage.in, images_, end, weight, bias), x, fused);
    } else if (scheme) {
      x = add(toeplitz_step(layer, *scheme, images_, end, weight, bias), x, fused);
    } else {
      x = add(window_step(layer, stage.in, stage.map, images_, end, weight, bias), x, fused);
    }
    if (stage.norm) x = add_norm(stage, x);
    if (!fuses) x = add_finish(stage, x, saved);
    return end.pool ? x : add_pool(stage, x);
  }

  int add_others(const Stage& stage, int x, int saved) {
    if (stage.is_op(Kind::kNormalize)) {
      x = add(blocks_ ? blocks_step(*stage.op, *stages_[1].op, stage.in, *blocks_, images_)
                      : normalize_step(*stage.op, stage.in, images_),
              x);
    } else if (stage.is_op(Kind::kSubsample)) {
      x = add(subsample_step(*stage.op, stage.in, stage.map, images_), x);
    }
    if (stage.norm) x = add_norm(stage, x);
    return add_pool(stage, add_finish(stage, x, saved));
  }

  // In double, rounded once.
  int add_norm(const Stage& stage, int x) {
    const auto tensor = [&](size_t i) { return weights_[stage.norm_tensor + i].floats(); };
    std::vector<float> scale, shift;
    for (int64_t c = 0; c < stage.map[0]; ++c) {
      const double factor = tensor(0)[c] / std::sqrt(double{tensor(3)[c]} + kBatchNormEpsilon);
      scale.push_back(static_cast<float>(factor));
      shift.push_back(static_cast<float>(tensor(1)[c] - double{tensor(2)[c]} * factor));
    }
    return add(scale_step(std::move(scale), std::move(shift), stage.map, images_), x);
  }

  int add_finish(const Stage& stage, int x, int saved) {
    if (!stage.saved && !stage.activation) return x;
    return add(finish_step(stage.map, images_, end_of(stage)), x, saved);
  }

  int add_pool(const Stage& stage, int x) {
    if (!stage.pool) return x;
    return add(stage.is_pool(Kind::kMaxPool)
                   ? max_pool_step(*stage.pool, stage.map, stage.out, images_)
                   : average_pool_step(stage.map, images_),
               x);
  }

  const std::vector<Stage>& stages_;
  const Weights& weights_;
  int64_t images_;
  std::optional<ToeplitzShape> blocks_;
  std::vector<PlacedStep> steps_;
};

// Gives every step a buffer that nobody reads any more. Returns how many there are.
size_t place_results(std::vector<PlacedStep>& steps) {
  std::vector<size_t> last_reader(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const int read : {steps[i].x, steps[i].saved}) {
      if (read >= 0) last_reader[read] = i;
    }
  }
  std::vector<int> free;
  int buffers = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (free.empty()) free.push_back(buffers++);
    steps[i].buffer = free.back();
    free.pop_back();
    for (const int read : {steps[i].x, steps[i].saved}) {
      const bool done = read >= 0 && last_reader[read] == i;
      if (done && std::find(free.begin(), free.end(), steps[read].buffer) == free.end()) {
        free.push_back(steps[read].buffer);
      }
    }
  }
  return buffers;
}

}  // namespace

std::string FastNetwork::refusal(const Network& network) {
  const std::vector<Stage> stages = stages_of(network);
  std::string why = parts_refusal(stages, kParts);
  if (why.empty()) why = normalization_refusal(stages);
  if (why.empty() && stages.back().out[1] * stages.back().out[2] != 1) {
    why = "it ends in a map, not in logits";
  }
  return why;
}

FastNetwork::FastNetwork(const Network& network, const Weights& weights, int64_t batch)
    : input_(network.input), batch_(batch), classes_(output_shape(network)[0]) {
  const std::string why = refusal(network);
  check(why.empty(), "FastNetwork: network {}: {}", network.name, why);
  const std::vector<Stage> stages = stages_of(network);
  part_ = images_in_part(stages, weights, batch);
  steps_ = Builder(stages, weights, part_).run();
  maps_.resize(place_results(steps_));
}

Array FastNetwork::operator()(const Array& images) {
  if (images.sizes() != Sizes{batch_, input_[0], input_[1], input_[2]}) {
    throw Error("images: [{}], the network takes [{}, {}]", fmt::join(images.sizes(), ", "), batch_,
                fmt::join(input_, ", "));
  }
  if (scratch_.empty()) {
    int64_t map = 0, scratch = 1;
    for (const PlacedStep& placed : steps_) {
      map = std::max(map, placed.step.out_size);
      scratch = std::max(scratch, placed.step.scratch_size);
    }
    for (std::vector<float>& buffer : maps_) buffer.resize(map);
    scratch_.resize(scratch);
  }
  Array logits({batch_, classes_});
  const int64_t image = images.count() / batch_;
  for (int64_t b = 0; b < batch_; b += part_) {
    run(images.floats() + b * image, logits.floats() + b * classes_);
  }
  return logits;
}

void FastNetwork::run(const float* images, float* logits) {
  const auto result = [&](int step) -> const float* {
    if (step == kNone) return nullptr;
    return step == kImages ? images : maps_[steps_[step].buffer].data();
  };
  for (const auto& [step, x, saved, buffer] : steps_) {
    step.run(result(x), result(saved), maps_[buffer].data(), scratch_.data());
  }
  std::copy_n(maps_[steps_.back().buffer].data(), part_ * classes_, logits);
}

}  // namespace fedsmooth
