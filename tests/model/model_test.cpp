#include "fedsmooth/model/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/file.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/model/safetensors.h"
#include "tests/arrays.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;
using Kind = Layer::Kind;

constexpr ImageKind kCifar = {{3, 32, 32}, 10};

ModelOptions options_for(const std::string& name) {
  return {name, {0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}};
}

Model random_model(const std::string& name) {
  const Network network = build_network(options_for(name), kCifar.input, kCifar.classes);
  return {network, initial_weights(network, Key{1}), 0.25, {}};
}

Array logits(const Model& model) {
  return reference_logits(model.network, model.weights, rising({2, 3, 32, 32}));
}

TEST(ModelTest, ReadsBackWrittenModels) {
  Model model = random_model("resnet20");
  model.class_names = {"plain", "with \"quotes\"", "größer", "4", "5", "6", "7", "8", "9", "10"};
  model.sigma = 0.1 + 0.2;  // needs all digits
  const Model again = parse_model(format_model(model), "m", {}, nullptr);
  EXPECT_EQ(again.network.name, "resnet20");
  EXPECT_EQ(again.network.input, kCifar.input);
  EXPECT_EQ(again.sigma, model.sigma);
  EXPECT_EQ(again.class_names, model.class_names);
  ASSERT_EQ(again.weights.size(), model.weights.size());
  for (size_t i = 0; i < model.weights.size(); ++i) {
    EXPECT_TRUE(same_bits(again.weights[i], model.weights[i])) << i;
  }
  EXPECT_TRUE(same_bits(logits(again), logits(model)));
  EXPECT_EQ(format_model(again), format_model(model));
}

TEST(ModelTest, TheFileDecidesOnTheNetworkNotTheOptions) {
  const std::string bytes = format_model(random_model("small"));
  EXPECT_EQ(parse_model(bytes, "m", options_for("alexnet"), &kCifar).network.name, "small");
}

// torch.nn.Sequential calls layers by number, DataParallel everything "module".
TEST(ModelTest, LayersMayBeCalledLikeAWrapper) {
  for (const char* name : {"1", "module", "1.module"}) {
    const ModelOptions options = {"layers", {0.5}, {0.25}, {{Kind::kLinear, name, 2}}};
    const ImageKind data = {{1, 2, 2}, 2};
    const Network network = build_network(options, data.input, data.classes);
    const std::string described = format_model({network, initial_weights(network, Key{1}), 0, {}});
    EXPECT_NO_THROW(parse_model(described, "m", {}, nullptr)) << name;
    Safetensors state_dict = parse_safetensors(described, "m");
    state_dict.metadata.clear();
    EXPECT_NO_THROW(parse_model(format_safetensors(state_dict), "m", options, &data)) << name;
  }
}

TEST(ModelTest, AClassNameThatIsNotUtf8IsRepaired) {
  Model model = random_model("small");
  model.class_names = std::vector<std::string>(10, "caf\xe9");
  const Model again = parse_model(format_model(model), "m", {}, nullptr);
  EXPECT_EQ(again.class_names.front(), "caf\xef\xbf\xbd");
}

/// A file that Python's safetensors wrote: its header from the fixture, and data in which the i-th
/// float of the file is i / 2^23.
std::string python_file(const std::string& fixture) {
  const std::string header =
      read_file(std::string(FEDSMOOTH_SOURCE "/tests/model/python/") + fixture + ".header");
  const json entries = json::parse(header);
  uint64_t size = 0;
  for (const json& entry : entries) size = std::max<uint64_t>(size, entry["data_offsets"][1]);
  std::vector<float> data(size / 4);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) / (1 << 23);
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(reinterpret_cast<const char*>(data.data()), size);
}

struct StateDict {
  const char* fixture;
  const char* network;
  const char* prefix;
};

class StateDictTest : public ::testing::TestWithParam<StateDict> {};

TEST_P(StateDictTest, IsRecognised) {
  const std::string bytes = python_file(GetParam().fixture);
  const Model model = parse_model(bytes, "m", options_for(""), &kCifar);
  EXPECT_EQ(model.network.name, GetParam().network);
  EXPECT_EQ(model.sigma, 0);
  EXPECT_TRUE(model.class_names.empty());
  const std::map<std::string, Array> tensors = parse_safetensors(bytes, "m").tensors;
  const std::vector<Parameter> wanted = parameters(model.network);
  ASSERT_EQ(model.weights.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(same_bits(model.weights[i], tensors.at(GetParam().prefix + wanted[i].name)));
  }
}

TEST_P(StateDictTest, IsTakenForTheNamedNetworkOnly) {
  const std::string bytes = python_file(GetParam().fixture);
  EXPECT_EQ(parse_model(bytes, "m", options_for(GetParam().network), &kCifar).network.name,
            GetParam().network);
  EXPECT_THROW(parse_model(bytes, "m", options_for("small"), &kCifar), Error);
}

INSTANTIATE_TEST_SUITE_P(All, StateDictTest,
                         ::testing::Values(StateDict{"alexnet", "alexnet", ""},
                                           StateDict{"alexnet-parallel", "alexnet", "module."},
                                           StateDict{"resnet20-sequential", "resnet20", "1."},
                                           StateDict{"resnet20-wrapped", "resnet20", "1.module."},
                                           StateDict{"resnet18", "resnet18", ""},
                                           StateDict{"vgg16-bn", "vgg16-bn", ""},
                                           StateDict{"wrn-16-4", "wrn-16-4", ""}),
                         [](const auto& test) {
                           std::string name = test.param.fixture;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ModelTest, EveryCommonWrappingIsRemoved) {
  const std::string bytes = format_model(random_model("small"));
  for (const char* prefix : {"", "1.", "module.", "1.module.", "module.1."}) {
    Safetensors wrapped;
    for (const auto& [name, tensor] : parse_safetensors(bytes, "m").tensors) {
      wrapped.tensors[prefix + name] = tensor;
    }
    const Model model = parse_model(format_safetensors(wrapped), "m", options_for(""), &kCifar);
    EXPECT_EQ(model.network.name, "small") << prefix;
  }
}

// AlexNet does not fit such images, which must not keep the networks after it from being tried.
TEST(ModelTest, RecognisesANetworkForImagesThatAreTooSmallForOthers) {
  const ImageKind data = {{3, 16, 16}, 10};
  const Network network = build_network(options_for("small"), data.input, data.classes);
  Safetensors state_dict =
      parse_safetensors(format_model({network, initial_weights(network, Key{1}), 0, {}}), "m");
  state_dict.metadata.clear();
  const Model model = parse_model(format_safetensors(state_dict), "m", options_for(""), &data);
  EXPECT_EQ(model.network.name, "small");
}

/// The refusal of a described "small" after `change` to its tensors and metadata.
template <typename Change>
std::string refusal_after(Change change, const ImageKind* data = nullptr) {
  Safetensors content = parse_safetensors(format_model(random_model("small")), "m");
  change(content);
  return refusal([&] { parse_model(format_safetensors(content), "m", {}, data); });
}

TEST(ModelTest, RefusesTensorsThatAreNotTheNetworks) {
  EXPECT_EQ(refusal_after([](Safetensors& s) { s.tensors.erase("features.3.bias"); }),
            "m: not the weights of network \"small\": tensor \"features.3.bias\" is missing");
  EXPECT_EQ(refusal_after([](Safetensors& s) { s.tensors["features.9.bias"] = Array({1}); }),
            "m: not the weights of network \"small\": tensor \"features.9.bias\" does not belong "
            "to it");
  EXPECT_EQ(refusal_after([](Safetensors& s) { s.tensors["classifier.bias"] = Array({9}); }),
            "m: not the weights of network \"small\": tensor \"classifier.bias\" has shape [9], "
            "expected [10]");
  EXPECT_EQ(refusal_after([](Safetensors& s) {
              s.tensors["classifier.weight"] = Array({256, 10});
            }),
            "m: not the weights of network \"small\": tensor \"classifier.weight\" has shape "
            "[256, 10], expected [10, 256]");
}

TEST(ModelTest, RefusesIntegersAsWeights) {
  std::string bytes = format_model(random_model("small"));
  // "F32" and two floats to "I64" and one: classifier.bias is the first tensor, of ten floats.
  const std::string before =
      R"("classifier.bias":{"data_offsets":[0,40],"dtype":"F32","shape":[10]})";
  const size_t place = bytes.find(before);
  ASSERT_NE(place, std::string::npos);
  std::string after = before;
  after.replace(after.find("F32"), 3, "I64").replace(after.find("[10]"), 4, "[5] ");
  bytes.replace(place, before.size(), after);
  EXPECT_EQ(refusal([&] { parse_model(bytes, "m", {}, nullptr); }),
            "m: not the weights of network \"small\": tensor \"classifier.bias\" holds integers");
}

TEST(ModelTest, RefusesDataThatTheModelIsNotFor) {
  const auto same = [](Safetensors&) {};
  const ImageKind small = {{3, 16, 16}, 10}, many = {{3, 32, 32}, 43};
  EXPECT_EQ(refusal_after(same, &small),
            "m: made for images [3, 32, 32], the data has [3, 16, 16]");
  EXPECT_EQ(refusal_after(same, &many), "m: gives 10 classes, the data has 43");
}

TEST(ModelTest, RefusesInvalidMetadata) {
  const auto with = [](const char* key, const char* value) {
    return refusal_after([&](Safetensors& s) { s.metadata[key] = value; });
  };
  EXPECT_EQ(with("fedsmooth.network", "{"), "m: fedsmooth.network: not a table");
  EXPECT_EQ(with("fedsmooth.network", "{\"input\": [3, 32, 32], \"layers\": [1]}"),
            "m: fedsmooth.network.layers[0]: not a table");
  for (const char* sigma : {"", "-1", "nan", "1e999", "\"0.25\"", "a\nb"}) {
    EXPECT_EQ(
        with("fedsmooth.sigma", sigma),
        fmt::format("m: metadata fedsmooth.sigma is {:?}, not a noise level", std::string(sigma)));
  }
  EXPECT_EQ(with("fedsmooth.classes", "3"), "m: metadata fedsmooth.classes is not a list of names");
  EXPECT_EQ(with("fedsmooth.classes", "[3]"),
            "m: metadata fedsmooth.classes is not a list of names");
  EXPECT_EQ(with("fedsmooth.classes", "[\"cat\"]"), "m: names 1 classes, its network gives 10");
}

TEST(ModelTest, RefusesANetworkThatGivesMaps) {
  const Network network = {"maps", {1, 4, 4}, {{Kind::kConv, "conv", 10}}};
  const std::string bytes = format_model({network, initial_weights(network, Key{1}), 0, {}});
  EXPECT_EQ(refusal([&] { parse_model(bytes, "m", {}, nullptr); }),
            "m: its network gives [10, 4, 4], not one value per class");
}

TEST(ModelTest, AStateDictNeedsItsData) {
  EXPECT_EQ(refusal([] { parse_model(python_file("alexnet"), "m", options_for(""), nullptr); }),
            "m: does not describe its network; give the data set it is for with --data.name");
}

TEST(ModelTest, SaysWhichNetworksAStateDictDoesNotFit) {
  const ImageKind many = {{3, 32, 32}, 43};
  EXPECT_EQ(refusal([&] { parse_model(python_file("alexnet"), "m", options_for(""), &many); }),
            "m: its tensors fit none of alexnet, alexnet-fc, resnet18, resnet20, resnet110, small, "
            "vgg16-bn, wrn-16-4, wrn-28-10 for 43 classes and images [3, 32, 32]; name the network "
            "with --model.name");
}

TEST(ModelTest, SaysWhyAStateDictIsNotTheNamedNetwork) {
  const ImageKind many = {{3, 32, 32}, 43};
  EXPECT_EQ(refusal([&] {
              parse_model(python_file("resnet20-wrapped"), "m", options_for("resnet20"), &many);
            }),
            "m: not the weights of network \"resnet20\": tensor \"fc.weight\" has shape [10, 64], "
            "expected [43, 64]");
}

TEST(ModelTest, RefusesNormalisationForOtherChannels) {
  const ModelOptions grey = {"", {0.5}, {0.25}};
  EXPECT_EQ(refusal([&] { parse_model(python_file("alexnet"), "m", grey, &kCifar); }),
            "network: normalisation for 1 channels, the images have 3");
}

TEST(ModelTest, ARunningVarianceBelowZeroIsRefused) {
  const Network network{
      "norm", {1, 1, 1}, {{Layer::Kind::kBatchNorm, "norm"}, {Layer::Kind::kLinear, "fc", 2}}};
  for (const float bad : {-1e-6f, -NAN}) {
    Model model{network, initial_weights(network, Key{1})};
    EXPECT_NO_THROW(parse_model(format_model(model), "m", {}, nullptr));
    model.weights[3] = Array::full({1}, 0.0f);
    EXPECT_NO_THROW(parse_model(format_model(model), "m", {}, nullptr));
    model.weights[3] = Array::full({1}, bad);
    EXPECT_EQ(refusal([&] { parse_model(format_model(model), "m", {}, nullptr); }),
              "m: \"norm.running_var\" has variances below zero; the model is damaged");
  }
}

}  // namespace
}  // namespace fedsmooth
