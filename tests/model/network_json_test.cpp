#include "fedsmooth/model/network_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/model/architectures.h"
#include "fedsmooth/model/layer_properties.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;
using Kind = Layer::Kind;

class NetworkJsonTest : public ::testing::TestWithParam<std::string> {};

TEST_P(NetworkJsonTest, ANamedNetworkReadsBackTheSame) {
  const ModelOptions options{GetParam(), {0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}};
  const Network network = build_network(options, {3, 32, 32}, 10);
  const std::string text = to_json(network).dump();
  const Network again = network_from_json(json::parse(text), "file");
  EXPECT_EQ(to_json(again).dump(), text);
  EXPECT_EQ(again.name, GetParam());
  EXPECT_EQ(again.input, network.input);
  const std::vector<Parameter> before = parameters(network), after = parameters(again);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].name, before[i].name);
    EXPECT_EQ(after[i].shape, before[i].shape);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NetworkJsonTest, ::testing::ValuesIn(architecture_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

std::vector<Layer> read(const std::string& text) {
  return layers_from_json(json::parse(text), "layers");
}

TEST(NetworkJsonTest, EveryFieldIsRead) {
  const std::vector<Layer> layers = read(R"([
      {"kind": "normalize", "mean": [0.5, 1], "sd": [0.25, 2]},
      {"kind": "conv", "name": "c", "outputs": 8, "kernel": 3, "stride": 2, "padding": 1,
       "bias": false},
      {"kind": "max-pool", "kernel": 3, "stride": 1},
      {"kind": "dropout", "drop_rate": 0.125},
      {"kind": "linear", "name": "l", "outputs": 4}])");
  ASSERT_EQ(layers.size(), 5u);
  EXPECT_EQ(layers[0].mean, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(layers[0].sd, (std::vector<double>{0.25, 2}));
  EXPECT_EQ(layers[1].name, "c");
  EXPECT_EQ(layers[1].outputs, 8);
  EXPECT_EQ(layers[1].kernel, 3);
  EXPECT_EQ(layers[1].stride, 2);
  EXPECT_EQ(layers[1].padding, 1);
  EXPECT_FALSE(layers[1].bias);
  EXPECT_EQ(layers[2].kernel, 3);
  EXPECT_EQ(layers[2].stride, 1);
  EXPECT_EQ(layers[3].drop_rate, 0.125);
  EXPECT_EQ(layers[4].outputs, 4);
  EXPECT_TRUE(layers[4].bias);
}

// A layer in which every property of its kind differs from its default.
Layer filled(Layer::Kind kind) {
  Layer layer{kind};
  if (count_tensors(layer) > 0) layer.name = "name";
  for_each_property(kind, [&](const char*, auto member) {
    using Member = std::remove_reference_t<decltype(layer.*member)>;
    if constexpr (std::is_same_v<Member, int64_t>) layer.*member = 5;
    if constexpr (std::is_same_v<Member, bool>) layer.*member = !(layer.*member);
    if constexpr (std::is_same_v<Member, double>) layer.*member = 0.25;
    if constexpr (std::is_same_v<Member, std::vector<double>>) layer.*member = {0.25, 3};
    if constexpr (std::is_same_v<Member, std::vector<Layer>>) layer.*member = {{Kind::kAvgPool}};
  });
  return layer;
}

// Reader, writer and the list of properties name the same keys.
TEST(NetworkJsonTest, EveryPropertyOfEveryKindReadsBackTheSame) {
  for (const auto& [name, kind] : layer_kinds()) {
    const Layer layer = filled(kind);
    const std::vector<Layer> again = layers_from_json(to_json(std::vector{layer}), "layers");
    EXPECT_TRUE(again == std::vector{layer}) << name;
  }
}

// Files of models that do not standardise keep their digests.
TEST(NetworkJsonTest, StandardizeIsWrittenOnlyIfSet) {
  Layer conv{Kind::kConv, "conv", 4, 3};
  EXPECT_FALSE(to_json(std::vector{conv})[0].contains("standardize"));
  conv.standardize = true;
  EXPECT_TRUE(to_json(std::vector{conv})[0]["standardize"]);
}

TEST(NetworkJsonTest, IsNeverWrittenWithoutAPropertyThatIsSet) {
  Layer conv{Kind::kConv, "conv", 4, 3};
  EXPECT_NO_THROW(to_json(std::vector{conv}));
  conv.groups = 2;
  EXPECT_THROW(to_json(std::vector{conv}), Bug);
}

TEST(NetworkJsonTest, TheDocumentNamesEveryKindAndProperty) {
  const std::string document = read_file(FEDSMOOTH_SOURCE "/docs/formats.md");
  const size_t begin = document.find("\nLayers, for"), end = document.find("\n## ", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string text = document.substr(begin, end - begin);
  const auto names = [&](const std::string& word) { return text.find(word) != std::string::npos; };
  for (const auto& [name, kind] : layer_kinds()) {
    EXPECT_TRUE(names("kind = \"" + name + "\"") || names("`" + name + "`")) << name;
    for_each_property(kind, [&](const char* key, auto) { EXPECT_TRUE(names(key)) << key; });
  }
}

TEST(NetworkJsonTest, MissingPropertiesHaveTheirDefaults) {
  const std::vector<Layer> layers = read(R"([
      {"kind": "conv", "outputs": 8, "kernel": 3}, {"kind": "max-pool", "kernel": 3},
      {"kind": "dropout"}, {"kind": "leaky-relu"}])");
  EXPECT_EQ(layers[3].slope, 0.01);
  EXPECT_EQ(layers[0].stride, 1);
  EXPECT_EQ(layers[0].padding, 0);
  EXPECT_TRUE(layers[0].bias);
  EXPECT_EQ(layers[1].stride, 3);
  EXPECT_EQ(layers[2].drop_rate, 0.5);
}

TEST(NetworkJsonTest, ALayerWithoutANameIsCalledAfterItsPlace) {
  const std::vector<Layer> layers = read(R"([
      {"kind": "relu"}, {"kind": "batch-norm"},
      {"kind": "residual", "body": [{"kind": "batch-norm"}],
       "shortcut": [{"kind": "relu"}, {"kind": "batch-norm"}]}])");
  EXPECT_EQ(layers[1].name, "layers.1");
  EXPECT_EQ(layers[2].body[0].name, "layers.2.body.0");
  EXPECT_EQ(layers[2].shortcut[1].name, "layers.2.shortcut.1");
}

#define KINDS                                                                             \
  "avg-pool, batch-norm, conv, dropout, gelu, group-norm, leaky-relu, linear, max-pool, " \
  "normalize, relu, residual, silu, subsample"

struct Refused {
  const char* text;
  const char* message;
};

TEST(NetworkJsonTest, SaysWhereALayerIsWrong) {
  const Refused cases[] = {
      {R"({"kind": "relu"})", "layers: not a list of layers"},
      {R"([3])", "layers[0]: not a table"},
      {R"([{}])", "layers[0].kind=\"\": no such kind of layer; use one of " KINDS},
      {R"([{"kind": "relu"}, {"kind": "conv3d"}])",
       "layers[1].kind=\"conv3d\": no such kind of layer; use one of " KINDS},
      {R"([{"kind": "re\nlu"}])",
       "layers[0].kind=\"re\\nlu\": no such kind of layer; use one of " KINDS},
      {R"([{"kind": 3}])", "layers[0].kind: not a string"},
      {R"([{"kind": "relu", "kernel": 3}])", "layers[0]: unknown key \"kernel\""},
      {R"([{"kind": "relu", "a\nb": 3}])", "layers[0]: unknown key \"a\\nb\""},
      {R"([{"kind": "linear"}])", "layers[0]: has no \"outputs\""},
      {R"([{"kind": "linear", "outputs": "ten"}])", "layers[0].outputs: not an integer"},
      {R"([{"kind": "linear", "outputs": 1.5}])", "layers[0].outputs: not an integer"},
      {R"([{"kind": "linear", "outputs": 0}])", "layers[0].outputs=0: must be from 1 to 1048576"},
      {R"([{"kind": "linear", "outputs": -1}])", "layers[0].outputs=-1: must be from 1 to 1048576"},
      {R"([{"kind": "linear", "outputs": 18446744073709551615}])",
       "layers[0].outputs=18446744073709551615: must be from 1 to 1048576"},
      {R"([{"kind": "linear", "outputs": 2, "bias": 1}])", "layers[0].bias: not true or false"},
      {R"([{"kind": "linear", "outputs": 2, "name": 1}])", "layers[0].name: not a string"},
      {R"([{"kind": "conv", "outputs": 2}])", "layers[0]: has no \"kernel\""},
      {R"([{"kind": "conv", "outputs": 2, "kernel": 1025}])",
       "layers[0].kernel=1025: must be from 1 to 1024"},
      {R"([{"kind": "conv", "outputs": 2, "kernel": 1, "stride": 0}])",
       "layers[0].stride=0: must be from 1 to 1024"},
      {R"([{"kind": "conv", "outputs": 2, "kernel": 1, "padding": -1}])",
       "layers[0].padding=-1: must be from 0 to 1024"},
      {R"([{"kind": "group-norm"}])", "layers[0]: has no \"groups\""},
      {R"([{"kind": "group-norm", "groups": 0}])", "layers[0].groups=0: must be from 1 to 1048576"},
      {R"([{"kind": "dropout", "drop_rate": 1}])", "layers[0].drop_rate=1: must be in [0, 1)"},
      {R"([{"kind": "dropout", "drop_rate": "a"}])", "layers[0].drop_rate: not a finite number"},
      {R"([{"kind": "leaky-relu", "slope": -0.5}])", "layers[0].slope=-0.5: must be in [0, 1]"},
      {R"([{"kind": "leaky-relu", "slope": "a"}])", "layers[0].slope: not a finite number"},
      {R"([{"kind": "silu", "slope": 0.5}])", "layers[0]: unknown key \"slope\""},
      {R"([{"kind": "normalize", "mean": 0.5, "sd": [1]}])", "layers[0].mean: not a list"},
      {R"([{"kind": "normalize", "mean": [0.5], "sd": [1, 1]}])", "layers[0]: 1 means and 2 sds"},
      {R"([{"kind": "normalize", "mean": ["a"], "sd": [1]}])",
       "layers[0].mean: not a finite number"},
      {R"([{"kind": "normalize", "mean": [0.5], "sd": [0]}])", "layers[0].sd=0: must be positive"},
      {R"([{"kind": "residual"}])", "layers[0]: has no \"body\""},
      {R"([{"kind": "residual", "body": [{"kind": "conv"}]}])",
       "layers[0].body[0]: has no \"kernel\""},
      {R"([{"kind": "residual", "body": [], "shortcut": [{"kind": "residual", "body": []}]}])",
       "layers[0].shortcut[0]: a residual block inside a residual block"},
  };
  for (const Refused& bad : cases) {
    EXPECT_EQ(refusal([&] { read(bad.text); }), bad.message) << bad.text;
  }
}

TEST(NetworkJsonTest, SaysWhereANetworkIsWrong) {
  const Refused cases[] = {
      {R"([])", "file: not a table"},
      {R"({"layers": []})", "file.input: not [channels, height, width]"},
      {R"({"input": [3, 32], "layers": []})", "file.input: not [channels, height, width]"},
      {R"({"input": [3, 32, "a"], "layers": []})", "file.input: not an integer"},
      {R"({"input": [3, 32, 0], "layers": []})", "file.input=0: must be from 1 to 4096"},
      {R"({"input": [3, 32, 4097], "layers": []})", "file.input=4097: must be from 1 to 4096"},
      {R"({"input": [3, 32, 32]})", "file: has no \"layers\""},
      {R"({"input": [3, 32, 32], "layers": [3]})", "file.layers[0]: not a table"},
      {R"({"input": [3, 32, 32], "layers": [], "classes": 3})", "file: unknown key \"classes\""},
      {R"({"input": [3, 2, 2], "layers": [{"kind": "max-pool", "kernel": 3}]})",
       "network: layer \"max-pool\": a window of 3 does not fit a map of 2 with padding 0"},
      {R"({"input": [1, 4096, 4096],
           "layers": [{"kind": "conv", "outputs": 1048576, "kernel": 1}]})",
       "network: a layer's output of [1048576, 4096, 4096] is too large"},
  };
  for (const Refused& bad : cases) {
    EXPECT_EQ(refusal([&] { network_from_json(json::parse(bad.text), "file"); }), bad.message)
        << bad.text;
  }
}

TEST(NetworkJsonTest, RefusesTextThatIsNotJson) {
  const json discarded = json::parse("{", nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(refusal([&] { network_from_json(discarded, "file"); }), "file: not a table");
}

TEST(NetworkJsonTest, RefusesTooManyLayers) {
  const json list(10'001, json{{"kind", "relu"}});
  EXPECT_EQ(refusal([&] { layers_from_json(list, "layers"); }),
            "layers: 10001 layers are too many");
}

}  // namespace
}  // namespace fedsmooth
