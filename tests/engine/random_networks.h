// Random networks of every part, for tests that compare engines on what nobody thought of.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/model/model.h"
#include "tests/layers.h"

namespace fedsmooth {

/// Draws a network and its weights. Half of the properties that engines refuse are left out of a
/// whole network, so that each engine accepts many of them.
class RandomNetwork {
 public:
  explicit RandomNetwork(uint64_t number)
      : key_(make_key(number, Purpose::kWeights)), draws_({key_, 1}) {}

  Model draw() {
    draw_features();
    Network network{"random", shape_};
    std::vector<Layer>& layers = network.layers;
    if (!chance(0.05)) add(layers, drawn_normalization());
    if (chance(0.6)) add(layers, drawn_conv());
    const int64_t count = 4 + draws_.below(9);
    for (int64_t i = 0; i < count; ++i) add_any(layers);
    add_end(layers);
    return {network, drawn_weights(network)};
  }

 private:
  using Kind = Layer::Kind;

  bool chance(double p) { return draws_.uniform() < p; }
  int64_t pick(const std::vector<int64_t>& from) { return from[draws_.below(std::ssize(from))]; }
  std::string next_name() { return "l" + std::to_string(named_++); }

  void draw_features() {
    static const std::vector<Shape> kImages = {{3, 32, 32}, {3, 16, 16}, {1, 8, 8},   {3, 8, 8},
                                               {2, 5, 5},   {2, 7, 4},   {4, 12, 12}, {1, 6, 10},
                                               {3, 13, 9},  {16, 4, 4},  {2, 3, 3}};
    shape_ = kImages[draws_.below(std::ssize(kImages))];
    group_norms_ = chance(0.2);
    batch_norms_ = chance(0.6);
    dropouts_ = chance(0.2);
    pools_ = chance(0.5);
    blocks_ = chance(0.6);
    large_ = chance(0.5);
    activations_ = chance(0.2);
    standardizes_ = chance(0.15);
  }

  void add(std::vector<Layer>& layers, Layer layer) {
    shape_ = shape_after(layer, shape_);
    layers.push_back(std::move(layer));
  }

  Layer drawn_normalization() {
    std::vector<double> mean, sd;
    for (int64_t c = 0; c < shape_[0]; ++c) {
      mean.push_back(draws_.uniform());
      sd.push_back(0.2 + draws_.uniform());
    }
    return normalize(mean, sd);
  }

  Layer conv_of(int64_t outputs, int64_t kernel, int64_t stride, int64_t padding) {
    Layer layer{Kind::kConv, next_name(), outputs, kernel, stride, padding};
    layer.bias = chance(0.5);
    layer.standardize = standardizes_ && chance(0.5);
    return layer;
  }

  int64_t drawn_outputs() { return pick({1, 3, 5, 8, 16, 16, 20, 32}); }

  // Any kernel, stride and padding that fit, half of the time such as keep the map's size.
  Layer drawn_conv() {
    const int64_t kernel = large_ ? 1 + draws_.below(7) : pick({1, 3});
    if (chance(0.5)) return conv_of(drawn_outputs(), kernel | 1, 1, kernel / 2);
    const int64_t least = std::max<int64_t>(0, (kernel - std::min(shape_[1], shape_[2]) + 1) / 2);
    const int64_t padding = least + draws_.below(kernel);
    return conv_of(drawn_outputs(), kernel, 1 + draws_.below(large_ ? 4 : 2), padding);
  }

  Layer drawn_norm() {
    Layer norm{Kind::kBatchNorm, next_name()};
    if (!group_norms_ || chance(0.3)) return norm;
    norm.kind = Kind::kGroupNorm;
    do norm.groups = 1 + draws_.below(shape_[0]);
    while (shape_[0] % norm.groups != 0);
    return norm;
  }

  void add_any(std::vector<Layer>& layers) {
    const int64_t which = draws_.below(10);
    const int64_t side = std::min(shape_[1], shape_[2]);
    if (which < 3) {
      add(layers, drawn_conv());
    } else if (which < 5) {
      add(layers, drawn_activation());
    } else if (which < 6) {
      if (batch_norms_ || group_norms_) add(layers, drawn_norm());
    } else if (which < 7) {
      const int64_t kernel = 1 + draws_.below(std::min<int64_t>(side, 3));
      if (pools_) add(layers, {Kind::kMaxPool, "", 0, kernel, 1 + draws_.below(3)});
    } else if (which < 8) {
      if (dropouts_) add(layers, drawn_dropout());
    } else if (blocks_) {
      add_block(layers);
    }
  }

  // A ReLU; in networks with other activations, any of the four.
  Layer drawn_activation() {
    Layer layer{Kind::kRelu};
    if (!activations_) return layer;
    const Kind kinds[] = {Kind::kRelu, Kind::kLeakyRelu, Kind::kSilu, Kind::kGelu};
    layer.kind = kinds[draws_.below(4)];
    if (layer.kind == Kind::kLeakyRelu) layer.slope = draws_.uniform();
    return layer;
  }

  Layer drawn_dropout() {
    Layer layer{Kind::kDropout};
    layer.drop_rate = 0.5 * draws_.uniform();
    return layer;
  }

  // Convolutions that keep the map's size or take every stride-th pixel; the shortcut follows.
  void add_block(std::vector<Layer>& layers) {
    const Shape before = shape_;
    const int64_t stride = chance(0.6) ? 1 : 2;
    const int64_t outputs = chance(0.5) ? before[0] : drawn_outputs();
    std::vector<Layer> body, shortcut;
    for (int64_t i = 0, count = 1 + draws_.below(2); i < count; ++i) {
      const int64_t kernel = large_ ? pick({1, 3, 5, 7}) : pick({1, 3});
      if (i > 0 && chance(0.7)) add(body, drawn_activation());
      add(body, conv_of(outputs, kernel, i == 0 ? stride : 1, kernel / 2));
      if ((batch_norms_ || group_norms_) && chance(0.6)) add(body, drawn_norm());
      if (dropouts_ && chance(0.2)) add(body, drawn_dropout());
    }
    const Shape after = std::exchange(shape_, before);
    const bool changes = after != before;
    if (changes && outputs >= before[0] && chance(0.5)) {
      add(shortcut, {Kind::kSubsample, "", outputs, 1, stride});
    } else if (changes || chance(0.2)) {
      add(shortcut, conv_of(outputs, 1, stride, 0));
    }
    if (batch_norms_ && !shortcut.empty() && chance(0.3)) add(shortcut, drawn_norm());
    layers.push_back(residual(body, shortcut));
    if (chance(0.7)) add(layers, drawn_activation());
  }

  // Mostly logits: by a linear layer, with a hidden one, or by channels; or a map.
  void add_end(std::vector<Layer>& layers) {
    const double end = draws_.uniform();
    if (end > 0.95) return;
    if (end > 0.5) add(layers, {Kind::kAvgPool});
    if (end > 0.85) return;
    if (chance(0.2)) {
      add(layers, drawn_linear());
      add(layers, drawn_activation());
    }
    add(layers, drawn_linear());
    if (batch_norms_ && chance(0.15)) add(layers, {Kind::kBatchNorm, next_name()});
  }

  Layer drawn_linear() {
    Layer layer{Kind::kLinear, next_name(), 2 + draws_.below(20)};
    layer.bias = chance(0.8);
    return layer;
  }

  // Kernels of variance 2 / fan_in keep the images' part in the maps; no norm is the identity.
  Weights drawn_weights(const Network& network) {
    Weights weights = initial_weights(network, key_);
    const std::vector<Parameter> described = parameters(network);
    for (size_t i = 0; i < weights.size(); ++i) {
      float* w = weights[i].floats();
      for (int64_t j = 0; j < weights[i].count(); ++j) {
        w[j] = described[i].fan_in > 0 ? std::sqrt(6.0f) * w[j]
                                       : static_cast<float>(0.5 + draws_.uniform());
      }
    }
    return weights;
  }

  Key key_;
  Draws draws_;
  Shape shape_ = {};
  int named_ = 0;
  bool group_norms_ = false, batch_norms_ = false, dropouts_ = false, pools_ = false,
       blocks_ = false, large_ = false, activations_ = false, standardizes_ = false;
};

}  // namespace fedsmooth
