#include "fedsmooth/model/network.h"

#include <cmath>
#include <unordered_set>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

constexpr int64_t kMaxFeatures = int64_t{1} << 31;  // keeps every product of sizes within 64 bits

int64_t features(const Shape& shape) { return shape[0] * shape[1] * shape[2]; }

int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                     const std::string& name) {
  const int64_t reach = size + 2 * padding - kernel;
  if (reach < 0) {
    throw Error("network: layer {:?}: a window of {} does not fit a map of {} with padding {}",
                name, kernel, size, padding);
  }
  return reach / stride + 1;
}

void append_parameters(const Layer& layer, const Shape& in, std::vector<Parameter>& out) {
  if (layer.kind == Kind::kConv || layer.kind == Kind::kLinear) {
    const bool conv = layer.kind == Kind::kConv;
    const int64_t fan_in = conv ? in[0] * layer.kernel * layer.kernel : features(in);
    out.push_back({layer.name + ".weight",
                   conv ? std::vector<int64_t>{layer.outputs, in[0], layer.kernel, layer.kernel}
                        : std::vector<int64_t>{layer.outputs, fan_in},
                   true, fan_in});
    if (layer.bias) out.push_back({layer.name + ".bias", {layer.outputs}, true, fan_in});
  } else if (layer.kind == Kind::kBatchNorm || layer.kind == Kind::kGroupNorm) {
    out.push_back({layer.name + ".weight", {in[0]}, true, 0, 1.0f});
    out.push_back({layer.name + ".bias", {in[0]}, true});
    if (layer.kind == Kind::kGroupNorm) return;
    out.push_back({layer.name + ".running_mean", {in[0]}, false});
    out.push_back({layer.name + ".running_var", {in[0]}, false, 0, 1.0f});
  }
}

Shape walk(const std::vector<Layer>& layers, Shape shape, std::vector<Parameter>& out) {
  for (const Layer& layer : layers) {
    if (layer.kind != Kind::kResidual) {
      append_parameters(layer, shape, out);
      shape = shape_after(layer, shape);
      if (features(shape) > kMaxFeatures) {
        throw Error("network: a layer's output of [{}] is too large", fmt::join(shape, ", "));
      }
      continue;
    }
    const Shape body = walk(layer.body, shape, out);
    const Shape shortcut = walk(layer.shortcut, shape, out);
    if (body != shortcut) {
      throw Error("network: a residual block's branches give [{}] and [{}]", fmt::join(body, ", "),
                  fmt::join(shortcut, ", "));
    }
    shape = body;
  }
  return shape;
}

}  // namespace

Shape shape_after(const Layer& layer, const Shape& in) {
  switch (layer.kind) {
    case Kind::kNormalize:
      if (static_cast<int64_t>(layer.mean.size()) != in[0]) {
        throw Error("network: normalisation for {} channels, the images have {}", layer.mean.size(),
                    in[0]);
      }
      if (layer.sd.size() != layer.mean.size()) {
        throw Error("network: normalisation with {} means and {} standard deviations",
                    layer.mean.size(), layer.sd.size());
      }
      return in;
    case Kind::kGroupNorm:
      if (layer.groups < 1 || in[0] % layer.groups != 0) {
        throw Error("network: layer {:?}: {} channels cannot be split into {} equal groups",
                    layer.name, in[0], layer.groups);
      }
      return in;
    case Kind::kConv:
      return {layer.outputs,
              window_count(in[1], layer.kernel, layer.stride, layer.padding, layer.name),
              window_count(in[2], layer.kernel, layer.stride, layer.padding, layer.name)};
    case Kind::kMaxPool:
      return {in[0], window_count(in[1], layer.kernel, layer.stride, 0, "max-pool"),
              window_count(in[2], layer.kernel, layer.stride, 0, "max-pool")};
    case Kind::kAvgPool:
      return {in[0], 1, 1};
    case Kind::kSubsample:
      if (layer.outputs < in[0]) {
        throw Error("network: a subsample layer from {} channels to {}", in[0], layer.outputs);
      }
      return {layer.outputs, window_count(in[1], 1, layer.stride, 0, "subsample"),
              window_count(in[2], 1, layer.stride, 0, "subsample")};
    case Kind::kLinear:
      return {layer.outputs, 1, 1};
    case Kind::kBatchNorm:
    case Kind::kRelu:
    case Kind::kLeakyRelu:
    case Kind::kSilu:
    case Kind::kGelu:
    case Kind::kDropout:
      return in;
    case Kind::kResidual:
      break;
  }
  throw Bug("shape_after: not one layer of a known kind");
}

size_t count_tensors(const Layer& layer) {
  if (layer.kind == Kind::kBatchNorm) return 4;
  if (layer.kind == Kind::kGroupNorm) return 2;
  if (layer.kind != Kind::kConv && layer.kind != Kind::kLinear) return 0;
  return layer.bias ? 2 : 1;
}

bool Parameter::is_variance() const { return !trained && name.ends_with(".running_var"); }

std::vector<Parameter> parameters(const Network& network) {
  std::vector<Parameter> found;
  walk(network.layers, network.input, found);
  std::unordered_set<std::string> names;
  for (const Parameter& p : found) {
    if (!names.insert(p.name).second) throw Error("network: two tensors are called {:?}", p.name);
  }
  return found;
}

Shape output_shape(const Network& network) {
  std::vector<Parameter> ignored;
  return walk(network.layers, network.input, ignored);
}

int64_t count_weights(const Network& network) {
  int64_t count = 0;
  for (const Parameter& p : parameters(network)) {
    if (p.trained) count += count_of(p.shape);
  }
  return count;
}

Weights initial_weights(const Network& network, Key key) {
  Weights weights;
  uint32_t item = 0;
  for (const Parameter& p : parameters(network)) {
    Array w = Array::full(p.shape, p.initial);
    if (p.fan_in > 0) {
      fill_uniform({key, item}, 0, w.floats(), w.count());
      const double bound = 1.0 / std::sqrt(static_cast<double>(p.fan_in));
      const auto width = static_cast<float>(2 * bound), low = static_cast<float>(bound);
      for (int64_t i = 0; i < w.count(); ++i) w.floats()[i] = w.floats()[i] * width - low;
    }
    weights.push_back(w);
    ++item;
  }
  return weights;
}

}  // namespace fedsmooth
