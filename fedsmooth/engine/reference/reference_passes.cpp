#include "fedsmooth/engine/reference/reference_passes.h"

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace reference {
namespace {

using Kind = Layer::Kind;

template <typename Number>
void add(const Map<Number>& other, Map<Number>& to) {
  for (size_t i = 0; i < to.values.size(); ++i) to.values[i] += other.values[i];
}

// What a map's readers have for its gradient so far, and one more.
template <typename Number>
void add_or_set(const Map<Number>& more, Map<Number>& gradient) {
  if (gradient.values.empty()) {
    gradient = more;
  } else {
    add(more, gradient);
  }
}

template <typename Number>
std::vector<Number> draw_kept(int64_t count, double rate, Stream stream, uint32_t sample) {
  std::vector<float> uniform(count);
  fill_uniform(stream, sample, uniform.data(), count);
  std::vector<Number> kept(count);
  for (int64_t i = 0; i < count; ++i) {
    kept[i] = uniform[i] >= static_cast<float>(rate) ? static_cast<Number>(1 / (1 - rate)) : 0;
  }
  return kept;
}

template <typename Number>
void scale_by(const std::vector<Number>& factors, Map<Number>& map) {
  for (size_t i = 0; i < map.values.size(); ++i) map.values[i] *= factors[i];
}

}  // namespace

template <typename Number>
ReferenceNetwork<Number>::ReferenceNetwork(const Network& network) : stages_(stages_of(network)) {
  const std::string why = parts_refusal(stages_, kReferenceParts);
  check(why.empty(), "reference: network {}: {}", network.name, why);
}

template <typename Number>
const Map<Number>& ReferenceNetwork<Number>::map_of(int stage) const {
  return stage == Stage::kImages ? images_ : kept_[stage].y;
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::forward(const Map<Number>& images,
                                              const std::optional<Stream>& training) {
  training_ = training;
  images_ = images;
  kept_.assign(stages_.size(), {});
  for (size_t i = 0; i < stages_.size(); ++i) kept_[i].y = apply(stages_[i], kept_[i]);
  return map_of(static_cast<int>(stages_.size()) - 1);
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::apply(const Stage& stage, Kept<Number>& kept) {
  Map<Number> h = apply_op(stage, map_of(stage.input));
  if (stage.norm) h = apply_norm(stage, std::move(h), kept);
  if (stage.saved) add(map_of(*stage.saved), h);
  if (stage.activation) {
    kept.before_activation = std::move(h);
    h = activate(*stage.activation, kept.before_activation);
  }
  if (stage.pool) kept.map = h;
  if (stage.is_pool(Kind::kMaxPool)) h = kept.pooled = max_pool(*stage.pool, h, stage.out);
  if (stage.is_pool(Kind::kAvgPool)) h = average_pool(h);
  if (stage.dropout && training_) {
    kept.kept = draw_kept<Number>(std::ssize(h.values), stage.dropout->drop_rate, *training_,
                                  stage.dropout_sample);
    scale_by(kept.kept, h);
  }
  return h;
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::apply_op(const Stage& stage, const Map<Number>& x) {
  if (!stage.op) return x;
  const Layer& layer = *stage.op;
  const auto tensor = [&](size_t i) -> const Values<Number>& {
    return weights[stage.op_tensor + i];
  };
  switch (layer.kind) {
    case Kind::kNormalize:
      return normalize(layer, x);
    case Kind::kConv:
    case Kind::kLinear:
      return convolve(layer, x, filters_of(layer, tensor(0)),
                      layer.bias ? tensor(1) : Values<Number>{}, stage.map);
    case Kind::kSubsample:
      return subsample(layer, x, stage.map);
    default:
      throw Bug("reference: unknown stage " + describe(stage));
  }
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::apply_norm(const Stage& stage, Map<Number> x,
                                                 Kept<Number>& kept) {
  const auto tensor = [&](size_t i) -> Values<Number>& { return weights[stage.norm_tensor + i]; };
  kept.before_norm = std::move(x);
  const Map<Number>& before = kept.before_norm;
  if (stage.is_norm(Kind::kGroupNorm)) {
    const int64_t groups = stage.norm->groups;
    kept.statistics = group_statistics(before, groups);
    return group_norm(before, groups, kept.statistics, tensor(0), tensor(1));
  }
  kept.of_batch = training_.has_value();
  kept.statistics = kept.of_batch ? batch_statistics(before, tensor(2), tensor(3))
                                  : running_statistics(tensor(2), tensor(3));
  return batch_norm(before, kept.statistics, tensor(0), tensor(1));
}

template <typename Number>
auto ReferenceNetwork<Number>::backward(const Map<Number>& gradient) -> Gradients {
  gradients_.weights.assign(weights.size(), {});
  gradients_.images = {};
  map_gradients_.assign(stages_.size(), {});
  gradient_of(static_cast<int>(stages_.size()) - 1) = gradient;
  for (size_t i = stages_.size(); i-- > 0;) {
    apply_back(stages_[i], kept_[i], std::move(map_gradients_[i]));
  }
  return std::move(gradients_);
}

template <typename Number>
Map<Number>& ReferenceNetwork<Number>::gradient_of(int stage) {
  return stage == Stage::kImages ? gradients_.images : map_gradients_[stage];
}

template <typename Number>
void ReferenceNetwork<Number>::apply_back(const Stage& stage, const Kept<Number>& kept,
                                          Map<Number> dy) {
  if (!kept.kept.empty()) scale_by(kept.kept, dy);
  if (stage.is_pool(Kind::kMaxPool)) dy = max_pool_back(*stage.pool, kept.map, kept.pooled, dy);
  if (stage.is_pool(Kind::kAvgPool)) dy = average_pool_back(dy, stage.map);
  if (stage.activation) dy = activate_back(*stage.activation, kept.before_activation, dy);
  if (stage.saved) add_or_set(dy, gradient_of(*stage.saved));
  if (stage.norm) dy = norm_back(stage, kept, dy);
  add_or_set(op_back(stage, std::move(dy)), gradient_of(stage.input));
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::norm_back(const Stage& stage, const Kept<Number>& kept,
                                                const Map<Number>& dy) {
  const Values<Number>& weight = weights[stage.norm_tensor];
  NormGradients<Number> found =
      stage.is_norm(Kind::kGroupNorm)
          ? group_norm_back(kept.before_norm, dy, stage.norm->groups, kept.statistics, weight)
          : batch_norm_back(kept.before_norm, dy, kept.statistics, weight, kept.of_batch);
  gradients_.weights[stage.norm_tensor] = std::move(found.weight);
  gradients_.weights[stage.norm_tensor + 1] = std::move(found.bias);
  return std::move(found.x);
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::op_back(const Stage& stage, Map<Number> dy) {
  if (!stage.op) return dy;
  const Layer& layer = *stage.op;
  switch (layer.kind) {
    case Kind::kNormalize:
      return normalize_back(layer, dy);
    case Kind::kConv:
    case Kind::kLinear:
      gradients_.weights[stage.op_tensor] = filters_back(
          layer, weights[stage.op_tensor], weight_gradient(layer, map_of(stage.input), dy));
      if (layer.bias) gradients_.weights[stage.op_tensor + 1] = bias_gradient(dy);
      return convolve_back(layer, dy, filters_of(layer, weights[stage.op_tensor]), stage.in);
    case Kind::kSubsample:
      return subsample_back(layer, dy, stage.in);
    default:
      throw Bug("reference: unknown stage " + describe(stage));
  }
}

template class ReferenceNetwork<float>;
template class ReferenceNetwork<double>;

namespace {

Map<float> to_map(const Array& images) {
  Map<float> map(images.size(0), {images.size(1), images.size(2), images.size(3)});
  std::copy_n(images.floats(), images.count(), map.values.begin());
  return map;
}

Array to_array(const Map<float>& map, Sizes sizes) {
  return Array::of(std::move(sizes), map.values);
}

class ReferencePasses : public Passes {
 public:
  explicit ReferencePasses(const Network& network)
      : parameters_(parameters(network)), network_(network) {}

  void load(const Weights& weights) override {
    check(weights.size() == parameters_.size(), "reference: {} tensors, the network has {}",
          weights.size(), parameters_.size());
    network_.weights.clear();
    for (size_t i = 0; i < weights.size(); ++i) {
      const Array& w = weights[i];
      check(w.sizes() == parameters_[i].shape, "reference: {} has sizes [{}], expected [{}]",
            parameters_[i].name, fmt::join(w.sizes(), ", "), fmt::join(parameters_[i].shape, ", "));
      network_.weights.emplace_back(w.floats(), w.floats() + w.count());
    }
  }

  Weights weights() const override {
    Weights found;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      found.push_back(Array::of(parameters_[i].shape, network_.weights[i]));
    }
    return found;
  }

  std::vector<std::span<float>> trained_values() override {
    std::vector<std::span<float>> found;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].trained) found.emplace_back(network_.weights[i]);
    }
    return found;
  }

  Array forward(const Array& images, const std::optional<Stream>& training) override {
    sizes_ = images.sizes();
    const Map<float> logits = network_.forward(to_map(images), training);
    logits_ = {logits.images, logits.size()};
    return to_array(logits, logits_);
  }

  Array backward_to_images(const Array& gradient) override {
    return to_array(backward(gradient).images, sizes_);
  }

  std::vector<WeightGradient> backward_to_weights(const Array& gradient) override {
    gradients_ = std::move(backward(gradient).weights);
    std::vector<WeightGradient> found;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].trained) continue;
      Values<float>& w = network_.weights[i];
      found.push_back({w.data(), gradients_[i].data(), std::ssize(w)});
    }
    return found;
  }

 private:
  ReferenceNetwork<float>::Gradients backward(const Array& gradient) {
    check(gradient.sizes() == logits_, "reference: gradient [{}], the last pass gave logits [{}]",
          fmt::join(gradient.sizes(), ", "), fmt::join(logits_, ", "));
    Map<float> map(gradient.size(0), {gradient.size(1), 1, 1});
    std::copy_n(gradient.floats(), gradient.count(), map.values.begin());
    return network_.backward(map);
  }

  std::vector<Parameter> parameters_;
  ReferenceNetwork<float> network_;
  std::vector<Values<float>> gradients_;
  Sizes sizes_, logits_;  // of the last pass's images and logits
};

}  // namespace
}  // namespace reference

std::unique_ptr<Passes> reference_passes(const Network& network) {
  return std::make_unique<reference::ReferencePasses>(network);
}

Array reference_logits(const Network& network, const Weights& weights, const Array& images) {
  const std::unique_ptr<Passes> passes = reference_passes(network);
  passes->load(weights);
  return passes->forward(images, std::nullopt);
}

}  // namespace fedsmooth
