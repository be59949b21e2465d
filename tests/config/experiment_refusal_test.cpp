// What is wrong with an experiment is reported with its position, in a file and on the command
// line.
#include <gtest/gtest.h>

#include "fedsmooth/base/text.h"
#include "fedsmooth/config/experiment.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

std::string parse_refusal(const std::string& text) {
  return refusal([&] { parse_experiment(text, "e.toml"); });
}

std::string set_refusal(const std::string& key, const std::string& value) {
  Experiment experiment;
  return refusal([&] { set_key(experiment, key, value); });
}

TEST(ExperimentRefusalTest, AnUnknownKeyIsNamedWithItsLineAndItsNeighbour) {
  EXPECT_EQ(parse_refusal("sead = 1"), "e.toml:1: unknown key \"sead\"; did you mean \"seed\"?");
  EXPECT_EQ(parse_refusal("seed = 1\n\n[certify]\nn0 = 3\nalhpa = 0.1\n"),
            "e.toml:5: unknown key \"certify.alhpa\"; did you mean \"certify.alpha\"?");
  EXPECT_EQ(parse_refusal("[smothing]\nsigma = 1"),
            "e.toml:1: unknown key \"smothing\"; did you mean \"smoothing\"?");
  EXPECT_EQ(parse_refusal("smothing.sigma = 1"),
            "e.toml:1: unknown key \"smothing\"; did you mean \"smoothing\"?");
  EXPECT_EQ(parse_refusal("\"a\\nb\" = 1"), "e.toml:1: unknown key \"a\\nb\"");
  EXPECT_EQ(parse_refusal("[[certify]]\nn = 1"), "e.toml:1: certify: must be a table");
  EXPECT_EQ(parse_refusal("certify = 1"), "e.toml:1: certify: must be a table");
}

// One edit away from each key, the suggestion is that key.
TEST(ExperimentRefusalTest, EveryKeyIsSuggestedForItsMisspelling) {
  for (const std::string& key : experiment_keys()) {
    const std::string wrong = std::string(key).insert(key.size() - 1, "x");
    EXPECT_EQ(parse_refusal(wrong + " = 1"),
              "e.toml:1: unknown key \"" + wrong + "\"; did you mean \"" + key + "\"?");
    EXPECT_EQ(set_refusal(wrong, "1"),
              "--" + wrong + ": unknown key; did you mean \"" + key + "\"?");
  }
}

struct Refused {
  const char* text;
  const char* message;
};

TEST(ExperimentRefusalTest, RefusesValuesOfTheWrongType) {
  const Refused cases[] = {
      {"seed = 1.5", "e.toml:1: seed: must be a whole number >= 0 or \"random\""},
      {"seed = \"dice\"", "e.toml:1: seed: must be a whole number >= 0 or \"random\""},
      {"data.root = 3", "e.toml:1: data.root: must be a string"},
      {"data.name = true", "e.toml:1: data.name: must be a string"},
      {"model.mean = 0.5", "e.toml:1: model.mean: must be a list of numbers"},
      {"model.mean = [\"a\"]", "e.toml:1: model.mean: must be a number"},
      {"model.layers = 3", "e.toml:1: model.layers: layers: not a list of layers"},
      {"model.layers = [{kind = 2020-01-01}]", "e.toml:1: model.layers: holds a date"},
      {"smoothing.sigma = \"0.5\"", "e.toml:1: smoothing.sigma: must be a number"},
      {"smoothing.sigma = true", "e.toml:1: smoothing.sigma: must be a number"},
      {"certify.n = 1e5", "e.toml:1: certify.n: must be a whole number"},
      {"certify.n = [1]", "e.toml:1: certify.n: must be a whole number"},
  };
  for (const Refused& bad : cases) EXPECT_EQ(parse_refusal(bad.text), bad.message);
}

TEST(ExperimentRefusalTest, RefusesValuesOutOfRange) {
  const Refused cases[] = {
      {"seed = -1", "e.toml:1: seed: must be a whole number >= 0 or \"random\""},
      {"data.name = \"mnist\"",
       "e.toml:1: data.name: must be cifar10, cifar100, idx, arrays, image-folder, shapes"},
      {"model.name = \"vgg\"",
       "e.toml:1: model.name: must be alexnet, alexnet-fc, resnet18, resnet20, resnet110, small, "
       "vgg16-bn, wrn-16-4, wrn-28-10, layers, or of another depth: resnetN, wrn-D-K"},
      {"model.sd = [0.5, 0]", "e.toml:1: model.sd: must be positive"},
      {"model.mean = [inf]", "e.toml:1: model.mean: must be finite"},
      {"smoothing.sigma = 0", "e.toml:1: smoothing.sigma: must be positive"},
      {"smoothing.sigma = -0.5", "e.toml:1: smoothing.sigma: must be positive"},
      {"smoothing.sigma = nan", "e.toml:1: smoothing.sigma: must be finite"},
      {"smoothing.sigma = inf", "e.toml:1: smoothing.sigma: must be finite"},
      {"certify.sigma = -1", "e.toml:1: certify.sigma: must be positive"},
      {"certify.alpha = 0", "e.toml:1: certify.alpha: must be at least 1e-50 and below 1"},
      {"certify.alpha = 1e-51", "e.toml:1: certify.alpha: must be at least 1e-50 and below 1"},
      {"certify.alpha = 1", "e.toml:1: certify.alpha: must be at least 1e-50 and below 1"},
      {"certify.n0 = 0", "e.toml:1: certify.n0: must be positive"},
      {"certify.n = 0", "e.toml:1: certify.n: must be positive"},
      {"certify.every = 0", "e.toml:1: certify.every: must be positive"},
      {"certify.limit = -1", "e.toml:1: certify.limit: must not be negative"},
      {"certify.radius = \"two-sided\"",
       "e.toml:1: certify.radius: must be one-sided, multiclass; did you mean \"one-sided\"?"},
      {"server.beta1 = 1", "e.toml:1: server.beta1: must be in [0, 1)"},
      {"server.beta1 = \"high\"", "e.toml:1: server.beta1: must be a number or \"auto\""},
      {"server.tau = 0", "e.toml:1: server.tau: must be positive"},
      {"server.learning_rate = -1", "e.toml:1: server.learning_rate: must be positive"},
      {"aggregate.trim = 0.5", "e.toml:1: aggregate.trim: must be in [0, 0.5)"},
      {"train.local.mu = -1", "e.toml:1: train.local.mu: must not be negative"},
      {"train.local.decay = 1.5", "e.toml:1: train.local.decay: must be from 0 to 1"},
      {"server.average_from = -1", "e.toml:1: server.average_from: must not be negative"},
      {"server.optimizer = \"adam\"\ntrain.server_momentum = 0.5",
       "e.toml:2: train.server_momentum: server.optimizer is \"adam\"; leave "
       "train.server_momentum out"},
      {"model.layers = [{kind = \"conv\", outputs = 3}]",
       "e.toml:1: model.layers: layers[0]: has no \"kernel\""},
  };
  for (const Refused& bad : cases) EXPECT_EQ(parse_refusal(bad.text), bad.message);
}

TEST(ExperimentRefusalTest, AMisspeltNameIsToldItsNeighbour) {
  const std::pair<const char*, const char*> cases[] = {{"server.optimizer", "adagard"},
                                                       {"aggregate.kind", "trimed-mean"},
                                                       {"train.method", "gausian"}};
  const char* neighbours[] = {"adagrad", "trimmed-mean", "gaussian"};
  for (size_t i = 0; i < 3; ++i) {
    const auto& [key, word] = cases[i];
    const std::string message = set_refusal(key, word);
    EXPECT_TRUE(message.ends_with(fmt::format("; did you mean {:?}?", neighbours[i]))) << message;
  }
}

TEST(ExperimentRefusalTest, SaysWhereTheTomlIsBroken) {
  for (const char* text : {"seed = 1\nseed = 2", "seed = 1\nmodel = ", "seed = 1\n[}",
                           "seed = 1\ndata.root = \"\xff\"", "seed = 1\nseed2 = tru\n"}) {
    const std::string message = parse_refusal(text);
    EXPECT_EQ(message.rfind("e.toml:2: ", 0), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

// A user may name a model where an experiment is wanted.
TEST(ExperimentRefusalTest, ABinaryFileIsCalledSo) {
  EXPECT_EQ(parse_refusal(std::string("\x90\0\0a.b", 6)),
            "e.toml: is a binary file, not one of an experiment");
}

// Each level costs a stack frame.
TEST(ExperimentRefusalTest, RefusesKeysThatAreNestedTooDeeply) {
  const auto nested = [](size_t depth) {
    std::string key = "model.layers";
    for (size_t i = 0; i < depth; ++i) key += ".a";
    return key + " = 1";
  };
  EXPECT_EQ(parse_refusal(nested(4000)), "e.toml:1: model.layers: is nested too deeply");
  EXPECT_EQ(parse_refusal(nested(1'000'000)), "e.toml: 1000001 dots, at most 4096 are allowed");
  EXPECT_EQ(set_refusal("model.layers", "{" + nested(1'000'000) + "}"),
            "--model.layers: 1000001 dots, at most 4096 are allowed");
}

TEST(ExperimentRefusalTest, TheCommandLineRepeatsWhatItRefuses) {
  EXPECT_EQ(set_refusal("smoothing.sigma", "-0.5"), "--smoothing.sigma=-0.5: must be positive");
  EXPECT_EQ(set_refusal("certify.n", "many"), "--certify.n=many: must be a whole number");
  EXPECT_EQ(set_refusal("certify.n", ""), "--certify.n=: must be a whole number");
  EXPECT_EQ(set_refusal("weather", "1"), "--weather: unknown key");
}

TEST(ExperimentRefusalTest, AValueOnTheCommandLineSetsOneKeyOnly) {
  for (const char* value : {"x\nseed=1", "\"x\"\nseed=1", "\"x\"\r\nseed = 1", "'x'\n[data]"}) {
    Experiment e;
    const std::string message = refusal([&] { set_key(e, "data.root", value); });
    EXPECT_EQ(message, fmt::format("--data.root={:?}: must be one line of UTF-8", value));
    EXPECT_EQ(format_experiment(e), format_experiment({}));
  }
}

TEST(ExperimentRefusalTest, TheCommandLineRefusesWhatTomlCannotHold) {
  EXPECT_EQ(set_refusal("data.root", "caf\xe9"),
            "--data.root=\"caf\\xe9\": must be one line of UTF-8");
}

TEST(ExperimentRefusalTest, NearestCountsEdits) {
  const std::vector<std::string> words = {"certify.n", "certify.n0", "smoothing.sigma"};
  EXPECT_EQ(nearest("certify.n0", words), "certify.n0");
  EXPECT_EQ(nearest("certfy.n", words), "certify.n");
  EXPECT_EQ(nearest("smoothing.sigam", words), "smoothing.sigma");
  EXPECT_EQ(nearest("something entirely different", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("a", {}), "");
}

}  // namespace
}  // namespace fedsmooth
