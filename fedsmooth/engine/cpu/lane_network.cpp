#include "fedsmooth/engine/cpu/lane_network.h"

#include <algorithm>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cpu/lane_pools.h"
#include "fedsmooth/engine/cpu/lane_stage.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// Memory that goes from map to map, so that it need not be asked for again and again.
class Buffers {
 public:
  std::vector<float> take(int64_t size) {
    std::vector<float> buffer;
    if (!free_.empty()) {
      buffer = std::move(free_.back());
      free_.pop_back();
    }
    buffer.resize(size);
    return buffer;
  }
  void give_back(std::vector<float> buffer) { free_.push_back(std::move(buffer)); }

 private:
  std::vector<std::vector<float>> free_;
};

class LanePasses : public Passes {
 public:
  explicit LanePasses(const Network& network)
      : network_(network), parameters_(parameters(network)) {
    const std::string why = lanes_refusal(network);
    check(why.empty(), "lane_passes: network {}: {}", network.name, why);
    for (const Stage& stage : stages_of(network)) stages_.emplace_back(stage);
  }

  void load(const Weights& weights) override {
    check(weights.size() == parameters_.size(), "lane_passes: {} tensors, the network has {}",
          weights.size(), parameters_.size());
    for (LaneStage& stage : stages_) stage.load(weights);
    moved_ = true;
  }

  Weights weights() const override {
    Weights found(parameters_.size());
    for (const LaneStage& stage : stages_) stage.store(parameters_, found);
    return found;
  }

  std::vector<std::span<float>> trained_values() override {
    std::vector<std::span<float>> found;
    for (const auto& [w, gradient, count] : trained_weights()) found.emplace_back(w, count);
    return found;
  }

  Array forward(const Array& images, const std::optional<Stream>& training) override {
    load_images(images);
    for (size_t i = 1; i < stages_.size(); ++i) {
      LaneStage& s = stages_[i];
      const float* saved = s.stage.saved ? stages_[*s.stage.saved].y().data() : nullptr;
      s.run(stages_[s.stage.input].y(), saved, lanes_, training.has_value(), moved_);
    }
    moved_ = false;
    const std::vector<float>& y = stages_.back().y();
    const int64_t classes = size_of(stages_.back().stage.out);
    Array logits({lanes_.batch, classes});
    for (int64_t b = 0; b < lanes_.batch; ++b) {
      for (int64_t k = 0; k < classes; ++k) {
        logits.floats()[b * classes + k] = y[k * lanes_.count + b];
      }
    }
    return logits;
  }

  Array backward_to_images(const Array& gradient) override {
    const std::vector<float> dx = backward(gradient, /*of_images=*/true, /*of_weights=*/false);
    const auto [channels, height, width] = network_.input;
    const int64_t area = height * width;
    Array images({lanes_.batch, channels, height, width});
    for (int64_t c = 0; c < channels; ++c) {
      const auto sd = static_cast<float>(network_.layers[0].sd[c]);
      float* to = images.floats() + c * area;
      for_pixels_and_lanes(area, [&](int64_t p, int64_t b) {
        to[b * channels * area + p] = dx[(p * channels + c) * lanes_.count + b] / sd;
      });
    }
    return images;
  }

  std::vector<WeightGradient> backward_to_weights(const Array& gradient) override {
    backward(gradient, /*of_images=*/false, /*of_weights=*/true);
    return trained_weights();
  }

 private:
  // With the gradients of the last pass that found them. The caller may move the weights.
  std::vector<WeightGradient> trained_weights() {
    std::vector<WeightGradient> of_tensor(parameters_.size());
    const auto set = [&](size_t tensor, std::vector<float>& w, const std::vector<float>& g) {
      of_tensor[tensor] = {w.data(), g.data(), std::ssize(w)};
    };
    for (LaneStage& s : stages_) {
      if (s.stage.is_product()) set(s.stage.op_tensor, s.kernel, s.gradient.kernel);
      if (s.stage.is_product() && s.conv.bias) {
        set(s.stage.op_tensor + 1, s.bias, s.gradient.bias);
      }
      if (!s.stage.norm) continue;
      set(s.stage.norm_tensor, s.norm.weight, s.norm.weight_gradient);
      set(s.stage.norm_tensor + 1, s.norm.bias, s.norm.bias_gradient);
    }
    moved_ = true;
    std::vector<WeightGradient> found;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].trained) found.push_back(of_tensor[i]);
    }
    return found;
  }

  // Normalised, [H, W, C, lanes].
  void load_images(const Array& images) {
    const auto [channels, height, width] = network_.input;
    const Layer& normalize = network_.layers[0];
    const int64_t area = height * width;
    lanes_ = {images.size(0), (images.size(0) + 15) / 16 * 16};
    std::vector<float>& input = stages_[0].map;
    input.assign(size_of(network_.input) * lanes_.count, 0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      const auto mean = static_cast<float>(normalize.mean[c]);
      const auto sd = static_cast<float>(normalize.sd[c]);
      const float* from = images.floats() + c * area;
      for_pixels_and_lanes(area, [&](int64_t p, int64_t b) {
        input[(p * channels + c) * lanes_.count + b] = (from[b * channels * area + p] - mean) / sd;
      });
    }
  }

  // A cache line of an image at a time: images lie so far apart that one of each, pixel by pixel,
  // would fall on the same few sets of the cache.
  template <typename Copy>
  void for_pixels_and_lanes(int64_t area, Copy copy) const {
    for (int64_t first = 0; first < area; first += 16) {
      for (int64_t b = 0; b < lanes_.batch; ++b) {
        for (int64_t p = first; p < std::min(first + 16, area); ++p) copy(p, b);
      }
    }
  }

  // The gradient of the normalised images, if asked for; those of the weights go to the stages.
  std::vector<float> backward(const Array& gradient, bool of_images, bool of_weights) {
    const int64_t classes = size_of(stages_.back().stage.out);
    check(lanes_.batch > 0 && gradient.sizes() == Sizes{lanes_.batch, classes},
          "lane_passes: gradient [{}], the last pass gave logits [{}, {}]",
          fmt::join(gradient.sizes(), ", "), lanes_.batch, classes);
    gradients_.assign(stages_.size(), {});
    std::vector<float>& last = gradients_.back();
    last.assign(classes * lanes_.count, 0.0f);
    for (int64_t b = 0; b < lanes_.batch; ++b) {
      for (int64_t k = 0; k < classes; ++k) {
        last[k * lanes_.count + b] = gradient.floats()[b * classes + k];
      }
    }
    for (size_t i = stages_.size(); i-- > 1;) {
      run_back(stages_[i], std::move(gradients_[i]), of_images, of_weights);
    }
    return std::move(gradients_[0]);
  }

  void run_back(LaneStage& s, std::vector<float> dy, bool of_images, bool of_weights) {
    const Stage& stage = s.stage;
    if (stage.pool) dy = pool_back(s, std::move(dy));
    if (stage.activation) s.activation_back(dy);
    if (stage.saved) add_gradient(*stage.saved, copy_of(dy));
    if (stage.norm) {
      if (of_weights || s.norm.of_batch) {
        find_norm_gradients(s.pixels(), lanes_, s.before_norm.data(), dy.data(), s.norm);
      }
      norm_gradient(s.norm, s.pixels(), lanes_, s.before_norm.data(), dy.data());
    }
    const std::vector<float>& x = stages_[stage.input].y();
    if (stage.is_product() && of_weights) {
      s.find_kernel_gradient(x, dy, lanes_);
    }
    if (stage.input == 0 && !of_images) return buffers_.give_back(std::move(dy));
    if (!stage.op) return add_gradient(stage.input, std::move(dy));
    std::vector<float> dx = buffers_.take(std::ssize(x));
    if (stage.is_product()) {
      convolve_gradient(s.conv, lanes_, s.filters().data(), dy.data(), dx.data(), s.scratch);
    } else {
      subsample_gradient(*stage.op, stage.in, stage.map, lanes_, dy.data(), dx.data());
    }
    buffers_.give_back(std::move(dy));
    add_gradient(stage.input, std::move(dx));
  }

  std::vector<float> pool_back(const LaneStage& s, std::vector<float> dy) {
    std::vector<float> dx = buffers_.take(std::ssize(s.map));
    if (s.stage.is_pool(Kind::kMaxPool)) {
      pool_gradient(*s.stage.pool, s.stage.map, s.stage.out, lanes_, s.map.data(), s.pooled.data(),
                    dy.data(), dx.data());
    } else {
      average_pool_gradient(s.stage.map, lanes_, dy.data(), dx.data());
    }
    buffers_.give_back(std::move(dy));
    return dx;
  }

  std::vector<float> copy_of(const std::vector<float>& values) {
    std::vector<float> copy = buffers_.take(std::ssize(values));
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
  }

  void add_gradient(int stage, std::vector<float> more) {
    std::vector<float>& sum = gradients_[stage];
    if (sum.empty()) {
      sum = std::move(more);
      return;
    }
    add_map(more.data(), std::ssize(sum), sum.data());
    buffers_.give_back(std::move(more));
  }

  Network network_;
  std::vector<Parameter> parameters_;
  std::vector<LaneStage> stages_;  // the first is the normalisation
  Lanes lanes_;
  bool moved_ = true;  // whether the weights are others than in the last pass
  std::vector<std::vector<float>> gradients_;  // of each stage's output, as far as they are known
  Buffers buffers_;
};

}  // namespace

std::string lanes_refusal(const Network& network) {
  const std::vector<Stage> stages = stages_of(network);
  if (stages.size() < 2) return "it has too few stages";
  const std::string why = parts_refusal(stages, kLaneParts);
  if (!why.empty()) return why;
  if (stages[0].parts != Parts{Part::kNormalize}) {
    return fmt::format("stage {} is not a normalisation alone", describe(stages[0]));
  }
  for (const Stage& stage : stages) {
    const bool square = stage.in[1] == stage.in[2];
    if (stage.is_op(Kind::kLinear) && !square) {
      return fmt::format("stage {} reads a map that is not square", describe(stage));
    }
  }
  if (stages.back().out[1] * stages.back().out[2] != 1) return "it ends in a map, not in logits";
  return normalization_refusal(stages);
}

std::unique_ptr<Passes> lane_passes(const Network& network) {
  return std::make_unique<LanePasses>(network);
}

}  // namespace fedsmooth
