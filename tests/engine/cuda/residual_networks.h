// Residual networks for tests, and what they give in double.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/residual_plan.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/model/architectures.h"
#include "tests/arrays.h"

namespace fedsmooth {

/// For 32x32 images, with a normalisation that differs between channels.
inline Network residual_network(const std::string& name, int64_t classes = 10) {
  return build_network({name, {0.5, 0.4, 0.3}, {0.2, 0.25, 0.3}}, {3, 32, 32}, classes);
}

/// He's weights, with the last convolution of a block smaller so that sums stay bounded. With
/// `statistics`, batch norms differ from the identity.
inline Model residual_model(const std::string& name, bool statistics, uint64_t seed = 1) {
  const Network network = residual_network(name);
  const std::vector<Parameter> all = parameters(network);
  Weights weights = initial_weights(network, Key{seed});
  double blocks = 0;
  for (const Parameter& p : all) blocks += p.name.ends_with("conv2.weight");
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& parameter = all[i].name;
    const auto ends = [&](const char* with) { return parameter.ends_with(with); };
    if (all[i].fan_in > 0) {
      const double gain = std::sqrt(6.0) / (ends("conv2.weight") ? std::sqrt(blocks / 3) : 1.0);
      weights[i] = each(weights[i], [&](float w) { return static_cast<float>(w * gain); });
    } else if (statistics) {
      const float center = ends("running_var") || ends(".weight") ? 1.0f : 0.0f;
      weights[i] = each(uniform(all[i].shape, seed + i),
                        [&](float v) { return center + 0.8f * (v - 0.5f); });
    }
  }
  return {network, weights, 0.5, {}};
}

/// Logits in double of images [B, 3, 32, 32], batch norms as they are.
inline std::vector<double> exact_logits(const Model& model, const Array& images) {
  reference::ReferenceNetwork<double> network(model.network);
  for (const Array& w : model.weights) {
    network.weights.emplace_back(w.floats(), w.floats() + w.count());
  }
  reference::Map<double> map(images.size(0), model.network.input);
  std::copy_n(images.floats(), images.count(), map.values.begin());
  return network.forward(map, std::nullopt).values;
}

enum class Rounding {
  kNone,
  kBfloat16,  // of weights and maps where the GPU rounds them
};

/// A plan in double, as plainly as possible.
class PlainPlan {
 public:
  PlainPlan(const ResidualPlan& plan, Rounding rounding) : plan_(plan), rounding_(rounding) {}

  std::vector<double> logits(const Array& images) const {
    Map x = convolve(plan_.stem, input(images), 1);
    finish(x, /*relu=*/true);
    Map h;
    for (int stage = 0; stage < residual::kStages; ++stage) {
      const PlannedStage& planned = plan_.stages[stage];
      bool second = stage > 0;
      for (const PlannedConv& conv : planned.layers) {
        if (second) {
          const Map sum = convolve(conv, h, 1);
          for (size_t i = 0; i < sum.values.size(); ++i) x.values[i] += sum.values[i];
          finish(x, true);
        } else {
          h = convolve(conv, x, 1);
          finish(h, true);
        }
        second = !second;
      }
      if (stage + 1 == residual::kStages) break;
      h = convolve(planned.enter, x, 2);
      finish(h, true);
      x = convolve(planned.shortcut, x, 2);
      finish(x, false);
    }
    const Layer linear{Layer::Kind::kLinear, "", plan_.classes};
    return reference::convolve(linear, reference::average_pool(x), doubles(plan_.linear),
                               doubles(plan_.linear_bias), {plan_.classes, 1, 1})
        .values;
  }

 private:
  using Map = reference::Map<double>;

  static std::vector<double> doubles(const Array& a) {
    return {a.floats(), a.floats() + a.count()};
  }

  double rounded(double value) const {
    if (rounding_ == Rounding::kNone) return value;
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent);  // in [1/2, 1), eight bits of it stay
    return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
  }

  Map input(const Array& images) const {
    Map map(images.size(0), {3, 32, 32});
    for (int64_t i = 0; i < images.count(); ++i) {
      const int64_t c = i / 1024 % 3;
      map.values[i] = rounded((images.floats()[i] - plan_.mean[c]) * plan_.scale[c]);
    }
    return map;
  }

  Map convolve(const PlannedConv& c, const Map& x, int64_t stride) const {
    const Layer layer{Layer::Kind::kConv, "", c.out, c.kernel, stride, c.kernel / 2};
    std::vector<double> weight = doubles(c.weight);
    for (double& w : weight) w = rounded(w);
    return reference::convolve(layer, x, weight, doubles(c.bias),
                               {c.out, x.shape[1] / stride, x.shape[2] / stride});
  }

  void finish(Map& map, bool relu) const {
    for (double& v : map.values) v = rounded(relu && v < 0 ? 0 : v);
  }

  const ResidualPlan& plan_;
  Rounding rounding_;
};

/// The largest ||a - b|| / ||b|| of a row of ten.
inline double worst_row(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t row = 0; row < b.size(); row += 10) {
    double off = 0, size = 0;
    for (size_t k = row; k < row + 10; ++k) {
      off += (a.at(k) - b[k]) * (a.at(k) - b[k]);
      size += b[k] * b[k];
    }
    const double relative = std::sqrt(off / size);
    if (!(relative <= worst)) worst = relative;  // NaN is the worst
  }
  return worst;
}

}  // namespace fedsmooth
