#include "fedsmooth/config/experiment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "fedsmooth/model/network_json.h"
#include "tests/model/refusal.h"

namespace fedsmooth {
namespace {

Experiment parse(const std::string& text) { return parse_experiment(text, "e.toml"); }

std::string parse_refusal(const std::string& text) {
  return refusal([&] { parse(text); });
}

Experiment set(const std::string& key, const std::string& value) {
  Experiment experiment;
  set_key(experiment, key, value);
  return experiment;
}

std::string set_refusal(const std::string& key, const std::string& value) {
  return refusal([&] { set(key, value); });
}

TEST(ExperimentTest, AnEmptyFileHasThePapersDefaults) {
  const Experiment e = parse("");
  EXPECT_EQ(e.seed, 0u);
  EXPECT_EQ(e.data.name, "cifar10");
  EXPECT_EQ(e.data.root, "data");
  EXPECT_EQ(e.model.name, "alexnet");
  EXPECT_TRUE(e.model.mean.empty());
  EXPECT_TRUE(e.model.sd.empty());
  EXPECT_TRUE(e.model.layers.empty());
  EXPECT_EQ(e.smoothing.sigma, 0.25);
  EXPECT_EQ(e.smoothing.m, 2);
  EXPECT_EQ(e.attack.steps, 2);
  EXPECT_EQ(e.attack.epsilon, 0.5);
  // The paper counts a round alike for both: 100 clients x 20 x 30 images = 1000 x 60.
  EXPECT_EQ(e.train.clients_per_round * e.train.local.steps * e.train.local.batch, 1000 * 60);
  EXPECT_EQ(e.certify.n0, 100);
  EXPECT_EQ(e.certify.n, 100'000);
  EXPECT_EQ(e.certify.alpha, 0.001);
  EXPECT_EQ(e.certify.sigma, 0);
  EXPECT_EQ(e.certify.radius, RadiusKind::kOneSided);
  EXPECT_EQ(e.certify.every, 20);
  EXPECT_EQ(e.certify.limit, 0);
  EXPECT_FALSE(e.certify.only_correct);
  EXPECT_FALSE(e.certify.noise_bank);
}

constexpr const char* kEveryKey = R"(
seed = 9223372036854775807
[data]
name = "image-folder"
root = 'C:\a "quoted" folder'
augment = false
[partition]
kind = "dirichlet"
clients = 77
samples_per_client = 33
gamma = 0.7
alpha = 0.3
shards = 4
file = "split.tsv"
[model]
name = "layers"
mean = [0.5, -1, 1e-30]
sd = [0.25, 1, 2]
[[model.layers]]
kind = "residual"
body = [{kind = "conv", name = "a \"quoted\" layer", outputs = 3, kernel = 3, padding = 1},
        {kind = "batch-norm"}]
[[model.layers]]
kind = "dropout"
drop_rate = 0.25
[[model.layers]]
kind = "linear"
outputs = 7
bias = false
[smoothing]
sigma = 0.12
m = 8
[attack]
estimator = "one-point"
steps = 10
epsilon = 1
step_size = 0.01
normalize = false
warmup_rounds = 5
measure_cosine = true
[train]
mode = "centralized"
method = "gaussian"
rounds = 3
clients_per_round = 2
schedule = "cosine"
server_momentum = 0.5
evaluate_every = 7
checkpoint_every = 6
[train.local]
steps = 1000
batch = 60
passes = 9
learning_rate = 0.1
momentum = 0
weight_decay = 0
[certify]
n0 = 10
n = 1_000
alpha = 0.05
sigma = 1
radius = "multiclass"
every = 3
limit = 500
only_correct = true
noise_bank = true
)";

TEST(ExperimentTest, ReadsEveryKey) {
  const Experiment e = parse(kEveryKey);
  EXPECT_EQ(e.seed, 9223372036854775807u);
  EXPECT_EQ(e.data.name, "image-folder");
  EXPECT_EQ(e.data.root, R"(C:\a "quoted" folder)");
  EXPECT_EQ(e.model.name, "layers");
  EXPECT_EQ(e.model.mean, (std::vector<double>{0.5, -1, 1e-30}));
  EXPECT_EQ(e.model.sd, (std::vector<double>{0.25, 1, 2}));
  ASSERT_EQ(e.model.layers.size(), 3u);
  EXPECT_EQ(e.model.layers[0].body[0].name, "a \"quoted\" layer");
  EXPECT_EQ(e.model.layers[0].body[1].name, "layers.0.body.1");
  EXPECT_EQ(e.model.layers[1].drop_rate, 0.25);
  EXPECT_EQ(e.model.layers[2].outputs, 7);
  EXPECT_FALSE(e.model.layers[2].bias);
  EXPECT_EQ(e.smoothing.sigma, 0.12);
  EXPECT_EQ(e.partition.kind, PartitionKind::kDirichlet);
  EXPECT_EQ(e.attack.estimator, Estimator::kOnePoint);
  EXPECT_EQ(e.attack.step_size, 0.01);
  EXPECT_EQ(e.train.mode, Mode::kCentralized);
  EXPECT_EQ(e.train.method, Method::kGaussian);
  EXPECT_EQ(e.train.local.steps, 1000);
  EXPECT_EQ(e.train.local.momentum, 0);
  EXPECT_EQ(e.certify.n0, 10);
  EXPECT_EQ(e.certify.n, 1000);
  EXPECT_EQ(e.certify.alpha, 0.05);
  EXPECT_EQ(e.certify.sigma, 1);
  EXPECT_EQ(e.certify.radius, RadiusKind::kMulticlass);
  EXPECT_EQ(e.certify.every, 3);
  EXPECT_EQ(e.certify.limit, 500);
  EXPECT_TRUE(e.certify.only_correct);
  EXPECT_TRUE(e.certify.noise_bank);
}

/// The lines of a formatted experiment.
std::multiset<std::string> lines(const std::string& text) {
  std::multiset<std::string> found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '[') found.insert(line);
  }
  return found;
}

// A new key is missing from kEveryKey until it is added there: its line would show the default.
TEST(ExperimentTest, EveryKeyReadsBackTheSame) {
  const std::string text = format_experiment(parse(kEveryKey));
  EXPECT_EQ(format_experiment(parse(text)), text);
  const std::multiset<std::string> given = lines(text), defaults = lines(format_experiment({}));
  EXPECT_EQ(given.size(), experiment_keys().size());
  for (const std::string& line : given) EXPECT_EQ(defaults.count(line), 0u) << line;
}

TEST(ExperimentTest, StringsReadBackTheSame) {
  for (const std::string text : {"", "a\"b'c\\d", "tab\tline\nend", "gr\u00f6\u00dfer \U0001f600",
                                 "\x01\x1f\x7f", "# no comment", "[data]"}) {
    Experiment e;
    e.data.root = text;
    EXPECT_EQ(parse(format_experiment(e)).data.root, text);
  }
}

TEST(ExperimentTest, NumbersReadBackTheSame) {
  for (const double number : {1.0, 0.1 + 0.2, 1e-300, 1e300, 123456789.0, 5e-324}) {
    Experiment e;
    e.smoothing.sigma = number;
    EXPECT_EQ(parse(format_experiment(e)).smoothing.sigma, number);
  }
}

TEST(ExperimentTest, KeysLeftOutKeepTheValuesOfTheBase) {
  Experiment base;
  base.seed = 5;
  base.certify.n = 7;
  const Experiment e = parse_experiment("certify.n0 = 3", "e.toml", base);
  EXPECT_EQ(e.seed, 5u);
  EXPECT_EQ(e.certify.n, 7);
  EXPECT_EQ(e.certify.n0, 3);
}

TEST(ExperimentTest, AnUnknownKeyIsNamedWithItsLineAndItsNeighbour) {
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
TEST(ExperimentTest, EveryKeyIsSuggestedForItsMisspelling) {
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

TEST(ExperimentTest, RefusesValuesOfTheWrongType) {
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

TEST(ExperimentTest, RefusesValuesOutOfRange) {
  const Refused cases[] = {
      {"seed = -1", "e.toml:1: seed: must be a whole number >= 0 or \"random\""},
      {"data.name = \"mnist\"", "e.toml:1: data.name: must be cifar10, image-folder, shapes"},
      {"model.name = \"vgg\"",
       "e.toml:1: model.name: must be alexnet, alexnet-fc, resnet20, resnet110, small, layers"},
      {"model.sd = [0.5, 0]", "e.toml:1: model.sd: must be positive"},
      {"model.mean = [inf]", "e.toml:1: model.mean: must be finite"},
      {"smoothing.sigma = 0", "e.toml:1: smoothing.sigma: must be positive"},
      {"smoothing.sigma = -0.5", "e.toml:1: smoothing.sigma: must be positive"},
      {"smoothing.sigma = nan", "e.toml:1: smoothing.sigma: must be finite"},
      {"smoothing.sigma = inf", "e.toml:1: smoothing.sigma: must be finite"},
      {"certify.sigma = -1", "e.toml:1: certify.sigma: must be positive"},
      {"certify.alpha = 0", "e.toml:1: certify.alpha: must be between 0 and 1"},
      {"certify.alpha = 1", "e.toml:1: certify.alpha: must be between 0 and 1"},
      {"certify.n0 = 0", "e.toml:1: certify.n0: must be positive"},
      {"certify.n = 0", "e.toml:1: certify.n: must be positive"},
      {"certify.every = 0", "e.toml:1: certify.every: must be positive"},
      {"certify.limit = -1", "e.toml:1: certify.limit: must not be negative"},
      {"certify.radius = \"two-sided\"", "e.toml:1: certify.radius: must be one-sided, multiclass"},
      {"model.layers = [{kind = \"conv\", outputs = 3}]",
       "e.toml:1: model.layers: layers[0]: has no \"kernel\""},
  };
  for (const Refused& bad : cases) EXPECT_EQ(parse_refusal(bad.text), bad.message);
}

TEST(ExperimentTest, SaysWhereTheTomlIsBroken) {
  for (const char* text : {"seed = 1\nseed = 2", "seed = 1\nmodel = ", "seed = 1\n[}",
                           "seed = 1\ndata.root = \"\xff\"", "seed = 1\nseed2 = tru\n"}) {
    const std::string message = parse_refusal(text);
    EXPECT_EQ(message.rfind("e.toml:2: ", 0), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

// Each level costs a stack frame.
TEST(ExperimentTest, RefusesKeysThatAreNestedTooDeeply) {
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

TEST(ExperimentTest, HasRoomForALargeNetwork) {
  Experiment e;
  e.model = {"layers", {}, {}, build_network({"resnet110", {0}, {1}}, {1, 32, 32}, 10).layers};
  const Experiment again = parse(format_experiment(e));
  EXPECT_EQ(to_json(again.model.layers), to_json(e.model.layers));
}

TEST(ExperimentTest, TheCommandLineTakesBareWordsAndTomlValues) {
  EXPECT_EQ(set("data.name", "shapes").data.name, "shapes");
  EXPECT_EQ(set("data.name", "\"shapes\"").data.name, "shapes");
  EXPECT_EQ(set("data.root", "/a/b c").data.root, "/a/b c");
  EXPECT_EQ(set("data.root", "").data.root, "");
  EXPECT_EQ(set("data.root", "\"").data.root, "\"");
  EXPECT_EQ(set("data.root", "'a\"b'").data.root, "a\"b");
  EXPECT_EQ(set("data.root", "2024").data.root, "2024");
  EXPECT_EQ(set("data.root", "true").data.root, "true");
  EXPECT_EQ(set("data.root", "größer").data.root, "größer");
  EXPECT_EQ(set("seed", "7").seed, 7u);
  EXPECT_EQ(set("certify.n", "1_000").certify.n, 1000);
  EXPECT_EQ(set("smoothing.sigma", "1").smoothing.sigma, 1);
  EXPECT_EQ(set("smoothing.sigma", "5e-1").smoothing.sigma, 0.5);
  EXPECT_EQ(set("model.mean", "[0.5, 1]").model.mean, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(set("model.layers", "[{kind = \"relu\"}]").model.layers.size(), 1u);
}

TEST(ExperimentTest, TheCommandLineRepeatsWhatItRefuses) {
  EXPECT_EQ(set_refusal("smoothing.sigma", "-0.5"), "--smoothing.sigma=-0.5: must be positive");
  EXPECT_EQ(set_refusal("certify.n", "many"), "--certify.n=many: must be a whole number");
  EXPECT_EQ(set_refusal("certify.n", ""), "--certify.n=: must be a whole number");
  EXPECT_EQ(set_refusal("weather", "1"), "--weather: unknown key");
}

TEST(ExperimentTest, AValueOnTheCommandLineSetsOneKeyOnly) {
  for (const char* value : {"x\nseed=1", "\"x\"\nseed=1", "\"x\"\r\nseed = 1", "'x'\n[data]"}) {
    Experiment e;
    const std::string message = refusal([&] { set_key(e, "data.root", value); });
    EXPECT_EQ(message, fmt::format("--data.root={:?}: must be one line of UTF-8", value));
    EXPECT_EQ(format_experiment(e), format_experiment({}));
  }
}

TEST(ExperimentTest, TheCommandLineRefusesWhatTomlCannotHold) {
  EXPECT_EQ(set_refusal("data.root", "caf\xe9"),
            "--data.root=\"caf\\xe9\": must be one line of UTF-8");
}

TEST(ExperimentTest, ARandomSeedIsAnotherEachTimeAndFitsToml) {
  const uint64_t once = set("seed", "random").seed, again = set("seed", "random").seed;
  EXPECT_NE(once, again);
  Experiment e;
  e.seed = once;
  EXPECT_EQ(parse(format_experiment(e)).seed, once);
}

TEST(ExperimentTest, NearestCountsEdits) {
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
