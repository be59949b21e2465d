#include "fedsmooth/config/experiment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "fedsmooth/federated/reductions/reductions.h"
#include "fedsmooth/federated/server/server_optimizers.h"
#include "fedsmooth/model/network_json.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

Experiment parse(const std::string& text) { return parse_experiment(text, "e.toml"); }

Experiment set(const std::string& key, const std::string& value) {
  Experiment experiment;
  set_key(experiment, key, value);
  return experiment;
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
}

constexpr const char* kEveryKey = R"(
seed = 9223372036854775807
[data]
name = "image-folder"
root = 'C:\a "quoted" folder'
augment = false
held_out = 7
[partition]
kind = "dirichlet"
clients = 77
samples_per_client = 33
gamma = 0.7
alpha = 0.3
shards = 4
file = "split.tsv"
[groups]
count = 20
number = 7
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
milestones = [2, 5]
decay = 0.5
evaluate_every = 7
checkpoint_every = 6
[train.local]
steps = 1000
batch = 60
passes = 9
learning_rate = 0.1
momentum = 0
weight_decay = 0
decay = 0.15
mu = 0.25
calibrate = true
[aggregate]
kind = "trimmed-mean"
clip = 7
trim = 0.2
assumed_bad = 4
iterations = 6
sfat = 1.4
[server]
optimizer = "yogi"
learning_rate = 0.03
momentum = 0.5
beta1 = 0
beta2 = 0.999
tau = 0.1
clusters = 5
average_from = 121
[byzantine]
share = 0.3
clients = [0, 17]
kind = "noise"
scale = 2.5
[objective]
lambda = 3
eta = 0.25
examples = "smoothadv"
steps = 3
step_size = 0.7
teacher = "runs/teacher"
teacher_votes = 50
[certify]
seed = 12
n0 = 10
n = 1_000
alpha = 0.05
sigma = 1
radius = "multiclass"
every = 3
limit = 500
only_correct = true
noise = "exact"
radii = [0.1, 0.5]
beta = 0.01
plan = 0.02
malicious = 3
noise_bank = false
[log]
tensorboard = true
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
  EXPECT_EQ(e.train.local.decay, 0.15);
  EXPECT_EQ(e.train.local.mu, 0.25);
  EXPECT_EQ(e.train.aggregate.kind, "trimmed-mean");
  EXPECT_EQ(e.train.aggregate.trim, 0.2);
  EXPECT_EQ(e.train.server.optimizer, "yogi");
  EXPECT_EQ(e.train.server.learning_rate, 0.03);
  EXPECT_EQ(e.train.server.momentum, 0.5);
  EXPECT_EQ(e.train.server.beta1, 0);
  EXPECT_EQ(e.train.server.beta2, 0.999);
  EXPECT_EQ(e.train.server.tau, 0.1);
  EXPECT_EQ(e.train.server.clusters, 5);
  EXPECT_EQ(e.train.server.average_from, 121);
  EXPECT_EQ(e.train.aggregate.clip, 7);
  EXPECT_EQ(e.train.aggregate.assumed_bad, 4);
  EXPECT_EQ(e.train.aggregate.iterations, 6);
  EXPECT_EQ(e.train.aggregate.sfat, 1.4);
  EXPECT_EQ(e.train.byzantine.share, 0.3);
  EXPECT_EQ(e.train.byzantine.clients, (std::vector<int64_t>{0, 17}));
  EXPECT_EQ(e.train.byzantine.kind, ByzantineKind::kNoise);
  EXPECT_EQ(e.train.byzantine.scale, 2.5);
  EXPECT_TRUE(e.train.local.calibrate);
  EXPECT_EQ(e.objective.lambda, 3);
  EXPECT_EQ(e.objective.eta, 0.25);
  EXPECT_EQ(e.objective.examples, ExampleSource::kSmoothAdv);
  EXPECT_EQ(e.objective.steps, 3);
  EXPECT_EQ(e.objective.step_size, 0.7);
  EXPECT_EQ(e.objective.teacher, "runs/teacher");
  EXPECT_EQ(e.objective.teacher_votes, 50);
  EXPECT_EQ(e.certify.radii, (std::vector<double>{0.1, 0.5}));
  EXPECT_EQ(e.certify.beta, 0.01);
  EXPECT_EQ(e.certify.malicious, 3);
  EXPECT_EQ(e.groups.count, 20);
  EXPECT_EQ(e.groups.number, 7);
  EXPECT_EQ(e.certify.plan, 0.02);
  EXPECT_EQ(e.certify.n0, 10);
  EXPECT_EQ(e.certify.n, 1000);
  EXPECT_EQ(e.certify.alpha, 0.05);
  EXPECT_EQ(e.certify.sigma, 1);
  EXPECT_EQ(e.certify.seed, 12u);
  EXPECT_EQ(e.certify.radius, RadiusKind::kMulticlass);
  EXPECT_EQ(e.certify.every, 3);
  EXPECT_EQ(e.certify.limit, 500);
  EXPECT_TRUE(e.log.tensorboard);
  EXPECT_TRUE(e.certify.only_correct);
  EXPECT_EQ(e.certify.noise, &kExactNoise);
}

// Older experiments state certify.noise_bank.
TEST(ExperimentTest, ARemovedFlagIsReadIfFalseAndRefusedByNameIfTrue) {
  EXPECT_EQ(format_experiment(parse("[certify]\nnoise_bank = false\n")), format_experiment({}));
  EXPECT_EQ(format_experiment({}).find("noise_bank"), std::string::npos);
  const auto said = [](const std::string& text) { return refusal([&] { parse(text); }); };
  EXPECT_NE(said("[certify]\nnoise_bank = true\n").find("certify.noise_bank: was removed: images"),
            std::string::npos);
  EXPECT_NE(said("[certify]\nnoise_bank = 1\n").find("certify.noise_bank: must be true or false"),
            std::string::npos);
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
  // Without train.server_momentum, an alias, and certify.noise_bank, which was removed.
  EXPECT_EQ(given.size() + 2, experiment_keys().size());

  for (const std::string& line : given) EXPECT_EQ(defaults.count(line), 0u) << line;
}

// Every name that a method or a rule is chosen by, with a letter too many.
TEST(ExperimentTest, AMisspeltNameIsRefusedWithTheRightOne) {
  std::vector<std::pair<std::string, std::string>> names = {{"byzantine.kind", "sign-flip"},
                                                            {"byzantine.kind", "noise"},
                                                            {"byzantine.kind", "label-flip"}};
  for (const auto& [name, method] : method_names()) names.emplace_back("train.method", name);
  for (const std::string& name : reductions().names()) names.emplace_back("aggregate.kind", name);
  for (const std::string& name : server_optimizers().names()) {
    names.emplace_back("server.optimizer", name);
  }
  for (const auto& [key, name] : names) {
    for (const std::string& misspelt : {name + "s", name.substr(0, 2) + name.substr(1)}) {
      Experiment e;
      const std::string said = refusal([&] { set_key(e, key, misspelt); });
      EXPECT_NE(said.find("did you mean \"" + name + "\"?"), std::string::npos) << said;
    }
  }
  for (const std::string key : {"aggregate.sfat", "byzantine.share", "server.average_from",
                                "server.clusters", "train.local.calibrate", "train.local.decay",
                                "train.local.mu", "objective.teacher", "objective.lambda"}) {
    Experiment e;
    const std::string said = refusal([&] { set_key(e, key + "s", "1"); });
    EXPECT_NE(said.find("did you mean \"" + key + "\"?"), std::string::npos) << said;
  }
}

// A node of a federation refuses these keys from the server: one that is not listed could make it
// open any file.
TEST(ExperimentTest, KeysThatTakeAnyPathAreListedAsFiles) {
  std::vector<std::string> open;
  for (const std::string& key : experiment_keys()) {
    Experiment experiment;
    if (refusal([&] { set_key(experiment, key, "/etc/passwd"); }) == "(nothing was refused)") {
      open.push_back(key);
    }
  }
  EXPECT_EQ(open, keys_of_files());
  EXPECT_EQ(open, (std::vector<std::string>{"data.root", "partition.file", "objective.teacher"}));
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
  for (const double number : {1.0, 0.1 + 0.2, 1e-300, 3.4e38, 123456789.0, 5e-324}) {
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

// The key that 0.1 had. Its files say server_momentum = 0.0 for the plain average.
TEST(ExperimentTest, ServerMomentumReadsAsTheServersRule) {
  const Experiment heavy = parse("train.server_momentum = 0.75");
  EXPECT_EQ(heavy.train.server.optimizer, "momentum");
  EXPECT_EQ(heavy.train.server.momentum, 0.75);
  EXPECT_EQ(show_key(heavy, "train.server_momentum"), "0.75");
  const std::string text = format_experiment(heavy);
  EXPECT_EQ(text.find("server_momentum"), std::string::npos);
  EXPECT_EQ(format_experiment(parse(text)), text);
  const Experiment plain = parse("train.server_momentum = 0.0");
  EXPECT_EQ(format_experiment(plain), format_experiment({}));
  EXPECT_EQ(show_key(plain, "train.server_momentum"), "0.0");
  Experiment changed = heavy;
  set_key(changed, "train.server_momentum", "0");
  EXPECT_EQ(changed.train.server.optimizer, "average");
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

TEST(ExperimentTest, ARandomSeedIsAnotherEachTimeAndFitsToml) {
  const uint64_t once = set("seed", "random").seed, again = set("seed", "random").seed;
  EXPECT_NE(once, again);
  Experiment e;
  e.seed = once;
  EXPECT_EQ(parse(format_experiment(e)).seed, once);
}

TEST(ExperimentTest, AResNetOfAnyDepthReadsBack) {
  for (const std::string name : {"resnet8", "resnet56-a", "resnet110"}) {
    const Experiment experiment = parse_experiment("model.name = '" + name + "'\n", "e.toml");
    EXPECT_EQ(parse_experiment(format_experiment(experiment), "e.toml").model.name, name);
  }
}

}  // namespace
}  // namespace fedsmooth
