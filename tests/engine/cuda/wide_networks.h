// Small networks of every kind of node that family kRows has, for tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/engine/cuda/graph.h"
#include "fedsmooth/model/layer_makers.h"
#include "tests/arrays.h"
#include "tests/layers.h"

namespace fedsmooth {

/// Makes networks whose nodes are wide if they have enough channels.
class WideNetworks {
 public:
  /// Returns the networks by name, for images [3, side, side] of ten classes, with `first` and
  /// `second` channels in most convolutions. With more than 64 these are wide.
  static std::map<std::string, Network> all(int64_t side, int64_t first, int64_t second) {
    const WideNetworks made{side, first, second};
    return {{"stages", made.stages()},
            {"preactivation", made.preactivation()},
            {"pools", made.pools()},
            {"hidden", made.hidden()},
            {"biased", made.biased()},
            {"grouped", made.grouped()},
            {"overlapping", made.overlapping()},
            {"alone", made.alone()},
            {"nested", made.nested()},
            {"plain", made.plain()},
            {"dropout", made.dropout()}};
  }

 private:
  using Kind = Layer::Kind;
  using Layers = std::vector<Layer>;

  WideNetworks(int64_t side, int64_t first, int64_t second)
      : side_(side), first_(first), second_(second) {}

  static Layer conv(const std::string& name, int64_t outputs, int64_t kernel = 3,
                    int64_t stride = 1, bool bias = false) {
    return layer_makers::conv(name, outputs, kernel, stride, kernel / 2, bias);
  }
  static Layer norm(const std::string& name) { return {Kind::kBatchNorm, name}; }
  static Layer group_norm(const std::string& name, int64_t groups) {
    Layer layer{Kind::kGroupNorm, name};
    layer.groups = groups;
    return layer;
  }
  static Layer relu() { return layer_makers::relu(); }
  static Layer mean() { return {Kind::kAvgPool}; }
  static Layer maxima(int64_t kernel, int64_t stride) {
    return {Kind::kMaxPool, "", 0, kernel, stride};
  }
  static Layer linear(const std::string& name, int64_t outputs) {
    return layer_makers::linear(name, outputs);
  }

  Network network(const std::string& name, Layers middle) const {
    middle.insert(middle.begin(), normalize({0.5, 0.25, 0.375}, {0.5, 0.25, 1}));
    middle.push_back(linear("end", 10));
    return {name, {3, side_, side_}, middle};
  }

  // Two residual stages behind a first convolution to 64 channels.
  Network stages() const {
    const Layer narrow =
        residual({conv("b", first_), norm("bn"), relu(), conv("c", first_), norm("cn")},
                 {conv("s", first_, 1), norm("sn")});
    const Layer wide =
        residual({conv("d", second_, 3, 2), norm("dn"), relu(), conv("e", second_), norm("en")},
                 {layer_makers::subsample(second_, 2)});
    return network("stages", {conv("a", 64), norm("an"), relu(), conv("a2", 64), norm("a2n"),
                              relu(), narrow, relu(), wide, relu(), mean()});
  }

  // Norms and ReLUs before convolutions, as in a Wide ResNet.
  Network preactivation() const {
    const Layer enters = residual({conv("b", first_, 3, 2), norm("bn"), relu(), conv("c", first_)},
                                  {conv("s", first_, 1, 2)});
    const Layer stays = residual(
        {norm("dn"), relu(), conv("d", first_), norm("en"), relu(), conv("e", first_)}, {});
    return network("preactivation",
                   {conv("a", 16), norm("an"), relu(), enters, stays, norm("zn"), relu(), mean()});
  }

  Network pools() const {
    return network("pools",
                   {conv("a", 32), norm("an"), relu(), maxima(2, 2), conv("b", first_), norm("bn"),
                    relu(), conv("c", second_), norm("cn"), relu(), maxima(2, 2)});
  }

  // A flattened map, hidden linear layers with and without a norm, the last after the mean.
  Network hidden() const {
    return network("hidden", {conv("a", 20, 5, 2, true), relu(), linear("b", second_), norm("bn"),
                              relu(), linear("c", 30), relu(), mean(), linear("d", 40)});
  }

  // Convolutions with a bias before norms of either kind.
  Network biased() const {
    return network("biased",
                   {conv("a", 16, 3, 1, true), norm("an"), relu(), conv("b", first_, 3, 2, true),
                    group_norm("bn", 8), relu(), conv("c", 20, 1, 1, true)});
  }

  Network grouped() const {
    const Layer stays = residual({group_norm("bn", 8), relu(), conv("b", first_),
                                  group_norm("cn", 3), relu(), conv("c", first_, 1)},
                                 {});
    return network("grouped", {conv("a", first_), group_norm("an", 1), relu(), stays, relu(),
                               maxima(3, 2), conv("d", second_), group_norm("dn", 5), mean()});
  }

  // Windows that overlap, cover a map in part, or leave pixels out; a mean before a convolution.
  Network overlapping() const {
    return network("overlapping",
                   {conv("a", 16, 3, 1, true), relu(), maxima(3, 1), maxima(3, 2),
                    conv("b", first_, 3, 1, true), relu(), maxima(1, 2), mean(), conv("c", 32, 1)});
  }

  // Norms, ReLUs, pools and sums on their own, also of the images.
  Network alone() const {
    const Layer of_images =
        residual({norm("an"), relu(), maxima(2, 1), relu(), norm("bn")}, {maxima(2, 1)});
    const Layer sum = residual({conv("c", 3), relu()}, {});
    return network("alone", {of_images, relu(), sum, maxima(2, 2), relu(), mean()});
  }

  // Dropouts behind a ReLU, a sum, a pool and the mean.
  Network dropout() const {
    const auto drop = [](double rate) { return layer_makers::dropout(rate); };
    const Layer stays =
        residual({conv("b", first_), norm("bn"), relu(), drop(0.3), conv("c", first_)}, {});
    return network("dropout", {conv("a", first_, 3, 2), norm("an"), relu(), drop(0.1), stays,
                               drop(0.2), norm("dn"), relu(), maxima(2, 2), drop(0.5),
                               conv("e", 20, 1, 1, true), relu(), mean(), drop(0.25)});
  }

  // Nothing that multiplies but the last layer.
  Network plain() const {
    return network("plain", {residual({norm("an")}, {}), relu(), maxima(2, 2)});
  }

  // Maps that several sums add, and that are read after such a sum.
  Network nested() const {
    const Layer inner = residual({conv("b", first_)}, {});
    const Layer middle = residual({inner, relu(), conv("c", first_)}, {});
    const Layer outer = residual({middle, conv("d", first_)}, {conv("e", first_, 1)});
    const Layer twice = residual({residual({conv("f", first_, 1)}, {}), relu()}, {});
    return network("nested", {conv("a", first_, 3, 2), relu(), outer, twice, mean()});
  }

  int64_t side_, first_, second_;
};

/// Weights for which no norm is the identity.
inline Weights drawn_weights(const Network& network) {
  Weights weights = initial_weights(network, Key{1});
  const std::vector<Parameter> described = parameters(network);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (described[i].fan_in > 0) continue;
    weights[i] = each(uniform(described[i].shape, i), [](float v) { return 0.5f + v; });
  }
  return weights;
}

}  // namespace fedsmooth
