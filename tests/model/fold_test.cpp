#include "fedsmooth/model/fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fedsmooth/base/check.h"
#include "tests/engine/networks.h"
#include "tests/engine/passes.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

/// Scales, shifts and statistics that leave no channel as it is.
Model model_of(const Network& network) {
  Model model{network, initial_weights(network, Key{1})};
  const std::vector<Parameter> described = parameters(network);
  for (size_t i = 0; i < described.size(); ++i) {
    if (described[i].fan_in > 0) continue;
    const float shift = described[i].initial > 0 ? 0.5f : -0.5f;  // scales and variances above 0
    model.weights[i] =
        each(uniform(described[i].shape, i), [&](float value) { return value + shift; });
  }
  return model;
}

std::map<std::string, Array> tensors_of(const Model& model) {
  std::map<std::string, Array> tensors;
  size_t i = 0;
  for (const Parameter& p : parameters(model.network)) tensors[p.name] = model.weights[i++];
  return tensors;
}

bool has_foldable(const std::vector<Layer>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool follows = i > 0 && layers[i - 1].kind == Kind::kConv;
    if (layers[i].kind == Kind::kBatchNorm && follows) return true;
    if (has_foldable(layers[i].body) || has_foldable(layers[i].shortcut)) return true;
  }
  return false;
}

double relative_error(const std::vector<double>& found, const std::vector<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double off = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    off += std::pow(found[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  return std::sqrt(off / size);
}

// In double only the folded weights are rounded, each by a relative 2^-24 at most, once for the
// scaling and shifting that a layer does. Maps then differ by 2^-24 of the sums of their terms'
// sizes, which a layer of random signs makes at most sqrt(fan_in) < 24 times as large as the maps
// themselves; errors of `depth` layers add up.
void expect_same_function(const Model& model, int64_t depth) {
  const Model folded = fold_batch_norm(model);
  EXPECT_FALSE(has_foldable(folded.network.layers));
  EXPECT_EQ(parameters(folded.network).size(), folded.weights.size());
  const Shape& in = model.network.input;
  const Array images = uniform({8, in[0], in[1], in[2]}, 99);
  const auto logits = [&](const Model& m) { return exact_logits(m.network, m.weights, images); };
  const std::vector<double> expected = logits(model), found = logits(folded);
  const double error = relative_error(found, expected);
  EXPECT_LT(error, static_cast<double>(24 * depth) * 0x1p-24);
  EXPECT_GT(error, 0);
  // In float32 the maps are rounded too, about as often as weights.
  const Array rounded = reference_logits(folded.network, folded.weights, images);
  EXPECT_LT(relative_error(rounded, expected), static_cast<double>(2 * 24 * depth) * 0x1p-24);
}

TEST(FoldTest, ResNetsGiveTheSameLogits) {
  const Model model = model_of(named_network("resnet20"));
  expect_same_function(model, 20);
  for (const Parameter& p : parameters(fold_batch_norm(model).network)) EXPECT_TRUE(p.trained);
}

// A convolution with a bias and two batch norms, a batch norm after no convolution, and a block
// with both branches.
Model mixed_model() {
  const auto bn = [](const char* name) { return layer(Kind::kBatchNorm, name); };
  return model_of({"mixed",
                   {2, 8, 8},
                   {two_channel_normalization(), bn("bn0"), layer(Kind::kConv, "conv1", 8, 3, 1, 1),
                    bn("bn1"), bn("bn2"), layer(Kind::kRelu, ""), bn("bn3"),
                    residual({bn("bn4"), layer(Kind::kConv, "conv2", 9, 3, 2, 1), bn("bn5"),
                              layer(Kind::kRelu, "")},
                             {layer(Kind::kConv, "conv3", 9, 1, 2), bn("bn6")}),
                    layer(Kind::kLinear, "linear", 4), bn("bn7")}});
}

bool standardizes(const std::vector<Layer>& layers) {
  return std::ranges::any_of(layers, [](const Layer& layer) {
    return layer.standardize || standardizes(layer.body) || standardizes(layer.shortcut);
  });
}

TEST(FoldTest, StandardizedFiltersBecomePlain) {
  for (const std::string name : {"resnet8-ws", "resnet8-gn-ws"}) {
    const Model model = model_of(named_network(name));
    EXPECT_TRUE(standardizes(model.network.layers));
    EXPECT_FALSE(standardizes(fold_batch_norm(model).network.layers));
    expect_same_function(model, 8);
  }
}

TEST(FoldTest, LayerListsGiveTheSameLogits) { expect_same_function(mixed_model(), 4); }

TEST(FoldTest, OtherTensorsStayAsTheyAre) {
  const Model model = mixed_model(), folded = fold_batch_norm(model);
  const auto before = tensors_of(model), after = tensors_of(folded);
  EXPECT_EQ(after.size(), 3 * 2 + 4 * 4 + 2U);  // convolutions, batch norms, the linear layer
  for (const auto& [name, tensor] : after) {
    const bool conv = name.rfind("conv", 0) == 0;
    EXPECT_TRUE(conv || tensor.data() == before.at(name).data()) << name;
    EXPECT_EQ(tensor.type(), Array::Type::kFloat) << name;
  }
}

TEST(FoldTest, RefusesTensorsOfAnotherNetwork) {
  Model model = mixed_model();
  model.weights.pop_back();
  EXPECT_THROW(fold_batch_norm(model), Bug);
}

}  // namespace
}  // namespace fedsmooth
