#include "fedsmooth/engine/reference/reference_passes.h"

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace reference {
namespace {

using Kind = Layer::Kind;

// Gives the layers their shapes and tensors, in the order of parameters().
template <typename Number>
std::vector<Stage<Number>> place(const std::vector<Layer>& layers, Shape& shape, size_t& weight) {
  std::vector<Stage<Number>> stages;
  for (const Layer& layer : layers) {
    Stage<Number> stage{layer, shape, shape, weight};
    if (layer.kind == Kind::kResidual) {
      Shape branch = shape;
      stage.body = place<Number>(layer.body, stage.out, weight);
      stage.shortcut = place<Number>(layer.shortcut, branch, weight);
    } else {
      stage.out = shape_after(layer, shape);
      weight += count_tensors(layer);
    }
    shape = stage.out;
    stages.push_back(std::move(stage));
  }
  return stages;
}

template <typename Number>
void add(const Map<Number>& other, Map<Number>& to) {
  for (size_t i = 0; i < to.values.size(); ++i) to.values[i] += other.values[i];
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
ReferenceNetwork<Number>::ReferenceNetwork(const Network& network) {
  Shape shape = network.input;
  size_t weight = 0;
  stages_ = place<Number>(network.layers, shape, weight);
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::forward(const Map<Number>& images,
                                              const std::optional<Stream>& training) {
  training_ = training;
  dropped_ = 0;
  return run(stages_, images);
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::run(std::vector<Stage<Number>>& stages, Map<Number> x) {
  for (Stage<Number>& stage : stages) {
    Map<Number> y = apply(stage, x);
    stage.x = std::move(x);
    x = std::move(y);
  }
  return x;
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::apply(Stage<Number>& stage, const Map<Number>& x) {
  const Layer& layer = stage.layer;
  const auto tensor = [&](size_t i) -> Values<Number>& { return weights[stage.weight + i]; };
  switch (layer.kind) {
    case Kind::kNormalize:
      return normalize(layer, x);
    case Kind::kConv:
    case Kind::kLinear:
      return convolve(layer, x, tensor(0), layer.bias ? tensor(1) : Values<Number>{}, stage.out);
    case Kind::kBatchNorm:
      stage.of_batch = training_.has_value();
      stage.statistics = stage.of_batch ? batch_statistics(x, tensor(2), tensor(3))
                                        : running_statistics(tensor(2), tensor(3));
      return batch_norm(x, stage.statistics, tensor(0), tensor(1));
    case Kind::kRelu:
      return stage.y = relu(x);
    case Kind::kMaxPool:
      return stage.y = max_pool(layer, x, stage.out);
    case Kind::kAvgPool:
      return average_pool(x);
    case Kind::kSubsample:
      return subsample(layer, x, stage.out);
    case Kind::kDropout: {
      stage.kept.clear();
      if (!training_) return x;
      stage.kept = draw_kept<Number>(std::ssize(x.values), layer.drop_rate, *training_, dropped_++);
      Map<Number> y = x;
      scale_by(stage.kept, y);
      return y;
    }
    case Kind::kResidual: {
      Map<Number> y = run(stage.body, x);
      add(run(stage.shortcut, x), y);
      return y;
    }
  }
  throw Bug("reference: unknown kind of layer");
}

template <typename Number>
auto ReferenceNetwork<Number>::backward(const Map<Number>& gradient) -> Gradients {
  gradients_.weights.assign(weights.size(), {});
  gradients_.images = run_back(stages_, gradient);
  return std::move(gradients_);
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::run_back(std::vector<Stage<Number>>& stages, Map<Number> dy) {
  for (size_t i = stages.size(); i-- > 0;) dy = apply_back(stages[i], dy);
  return dy;
}

template <typename Number>
Map<Number> ReferenceNetwork<Number>::apply_back(Stage<Number>& stage, const Map<Number>& dy) {
  const Layer& layer = stage.layer;
  const auto gradient = [&](size_t i) -> Values<Number>& {
    return gradients_.weights[stage.weight + i];
  };
  switch (layer.kind) {
    case Kind::kNormalize:
      return normalize_back(layer, dy);
    case Kind::kConv:
    case Kind::kLinear:
      gradient(0) = weight_gradient(layer, stage.x, dy);
      if (layer.bias) gradient(1) = bias_gradient(dy);
      return convolve_back(layer, dy, weights[stage.weight], stage.in);
    case Kind::kBatchNorm: {
      BatchNormGradients<Number> found =
          batch_norm_back(stage.x, dy, stage.statistics, weights[stage.weight], stage.of_batch);
      gradient(0) = std::move(found.weight);
      gradient(1) = std::move(found.bias);
      return std::move(found.x);
    }
    case Kind::kRelu:
      return relu_back(stage.y, dy);
    case Kind::kMaxPool:
      return max_pool_back(layer, stage.x, stage.y, dy);
    case Kind::kAvgPool:
      return average_pool_back(dy, stage.in);
    case Kind::kSubsample:
      return subsample_back(layer, dy, stage.in);
    case Kind::kDropout: {
      Map<Number> dx = dy;
      if (!stage.kept.empty()) scale_by(stage.kept, dx);
      return dx;
    }
    case Kind::kResidual: {
      Map<Number> dx = run_back(stage.body, dy);
      add(run_back(stage.shortcut, dy), dx);
      return dx;
    }
  }
  throw Bug("reference: unknown kind of layer");
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
