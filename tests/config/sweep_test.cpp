#include "fedsmooth/config/sweep.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/refusal.h"

namespace fedsmooth {
namespace {

std::vector<std::string> names(const Sweep& sweep) {
  std::vector<std::string> found;
  for (const NamedExperiment& one : expand(sweep)) found.push_back(one.name);
  return found;
}

std::string sweep_refusal(const std::string& text) {
  return refusal([&] { parse_sweep(text, "e.toml", "e"); });
}

constexpr const char* kGrid = R"(
seed = 7
[sweep]
"smoothing.sigma" = [0.12, 0.5]
"attack.epsilon" = [0.25, 1]
"attack.estimator" = ["stochastic", "one-point"]
)";

TEST(SweepTest, IsTheProductInTheOrderOfTheFile) {
  const Sweep sweep = parse_sweep(kGrid, "e.toml", "e");
  EXPECT_EQ(names(sweep),
            (std::vector<std::string>{
                "e-sigma0.12-epsilon0.25-stochastic", "e-sigma0.12-epsilon0.25-one-point",
                "e-sigma0.12-epsilon1.0-stochastic", "e-sigma0.12-epsilon1.0-one-point",
                "e-sigma0.5-epsilon0.25-stochastic", "e-sigma0.5-epsilon0.25-one-point",
                "e-sigma0.5-epsilon1.0-stochastic", "e-sigma0.5-epsilon1.0-one-point"}));
  const auto all = expand(sweep);
  EXPECT_EQ(all[5].experiment.seed, 7u);
  EXPECT_EQ(all[5].experiment.smoothing.sigma, 0.5);
  EXPECT_EQ(all[5].experiment.attack.epsilon, 0.25);
  EXPECT_EQ(all[5].experiment.attack.estimator, Estimator::kOnePoint);
  std::set<std::string> different;
  for (const NamedExperiment& one : all) different.insert(format_experiment(one.experiment));
  EXPECT_EQ(different.size(), 8u);
}

TEST(SweepTest, SeveralTablesAreOneGridAfterAnother) {
  Sweep sweep = parse_sweep(
      "seed = 7\n[[sweep]]\n'smoothing.sigma' = [0.5, 1]\n"
      "[[sweep]]\nseed = [8]\n'smoothing.sigma' = [0.5]\n",
      "e.toml", "e");
  EXPECT_EQ(names(sweep),
            (std::vector<std::string>{"e-sigma0.5", "e-sigma1.0", "e-seed8-sigma0.5"}));
  EXPECT_EQ(expand(sweep)[1].experiment.seed, 7u);
  EXPECT_EQ(expand(sweep)[2].experiment.seed, 8u);
  set_key(sweep, "smoothing.sigma", "2");
  EXPECT_EQ(names(sweep), (std::vector<std::string>{"e-sigma2.0", "e-seed8-sigma2.0"}));
}

TEST(SweepTest, WithoutATableItIsOneExperiment) {
  const Sweep sweep = parse_sweep("seed = 3", "e.toml", "e");
  EXPECT_EQ(names(sweep), std::vector<std::string>{"e"});
  EXPECT_EQ(expand(sweep)[0].experiment.seed, 3u);
}

TEST(SweepTest, KeysMayBeQuotedOrNot) {
  const Sweep sweep = parse_sweep("[sweep]\ntrain.local.steps = [1, 2]\nseed = [4]", "e.toml", "e");
  EXPECT_EQ(names(sweep), (std::vector<std::string>{"e-steps1-seed4", "e-steps2-seed4"}));
}

TEST(SweepTest, AnOverrideOfASweptKeyLeavesOneValue) {
  Sweep sweep = parse_sweep(kGrid, "e.toml", "e");
  set_key(sweep, "attack.epsilon", "0.25");
  set_key(sweep, "smoothing.sigma", "0.3");
  set_key(sweep, "train.rounds", "2");
  EXPECT_EQ(names(sweep), (std::vector<std::string>{"e-sigma0.3-epsilon0.25-stochastic",
                                                    "e-sigma0.3-epsilon0.25-one-point"}));
  EXPECT_EQ(expand(sweep)[1].experiment.train.rounds, 2);
  EXPECT_EQ(refusal([&] { set_key(sweep, "attack.epsilon", "x"); }),
            "--attack.epsilon=x: must be a number");
}

TEST(SweepTest, NamesAreFitForFolders) {
  const Sweep sweep = parse_sweep(
      "[sweep]\n'data.root' = ['/a b', '..']\n'data.augment' = [true, false]\n'model.mean' = "
      "[[0.5, 1]]\n",
      "e.toml", "e");
  EXPECT_EQ(names(sweep), (std::vector<std::string>{
                              "e-_a_b-augment-mean_0.5__1.0_", "e-_a_b-no-augment-mean_0.5__1.0_",
                              "e-..-augment-mean_0.5__1.0_", "e-..-no-augment-mean_0.5__1.0_"}));
}

TEST(SweepTest, RefusesWhatCannotBeSwept) {
  EXPECT_EQ(sweep_refusal("[sweep]\n'smoothing.sigam' = [1]"),
            "e.toml:2: sweep: unknown key \"smoothing.sigam\"; did you mean \"smoothing.sigma\"?");
  EXPECT_EQ(sweep_refusal("[sweep]\n'smoothing.sigma' = [0.1, -1]"),
            "e.toml:2: sweep: smoothing.sigma: must be positive");
  EXPECT_EQ(sweep_refusal("[sweep]\nseed = 1"), "e.toml:2: sweep: seed: must be a list of values");
  EXPECT_EQ(sweep_refusal("[sweep]\nseed = []"), "e.toml:2: sweep: seed: must be a list of values");
  EXPECT_EQ(sweep_refusal("[sweep]\n'attack.epsilon' = [0.5, 0.50]"),
            "e.toml:2: sweep: attack.epsilon: 0.5 is there twice");
  EXPECT_EQ(sweep_refusal("sweep = [1]"), "e.toml:1: sweep: must be a table of lists");
  EXPECT_EQ(sweep_refusal("\n[sweep]\n"), "e.toml:2: sweep: must be a table of lists");
  EXPECT_EQ(sweep_refusal("[[sweep]]\nseed = [1]\n[[sweep]]\n"),
            "e.toml:3: sweep: must be a table of lists");
  EXPECT_EQ(sweep_refusal("[[sweep]]\nseed = [1]\n[[sweep]]\nseed = 1\n"),
            "e.toml:4: sweep: seed: must be a list of values");
  EXPECT_EQ(sweep_refusal("sead = 1\n[sweep]\nseed = [1]"),
            "e.toml:1: unknown key \"sead\"; did you mean \"seed\"?");
  std::string many = "[sweep]\n";
  for (const std::string key : {"seed", "train.rounds", "certify.n", "smoothing.m"}) {
    many += "'" + key + "' = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n";
  }
  EXPECT_EQ(sweep_refusal(many), "e.toml: sweep: more than 10000 experiments");
}

// Appendix A: a round sees as many images by 100 clients of 1,000 as centrally.
TEST(SweepTest, ThePapersRunsSeeTheSameNumberOfImages) {
  const std::filesystem::path folder =
      std::filesystem::path(FEDSMOOTH_SOURCE) / "experiments/paper";
  size_t runs = 0;
  for (const char* file : {"centralized", "homogeneous", "heterogeneous", "ablation"}) {
    for (const auto& [name, e] : expand(read_sweep(folder / (std::string(file) + ".toml")))) {
      const bool central = e.train.mode == Mode::kCentralized;
      const int64_t clients = central ? 1 : e.train.clients_per_round;
      EXPECT_EQ(clients * e.train.local.steps * e.train.local.batch, 60'000) << name;
      EXPECT_EQ(central ? 1000 : 20, e.train.local.steps) << name;
      EXPECT_EQ(e.partition.clients, 1000) << name;
      EXPECT_EQ(e.train.rounds, 150) << name;
      ++runs;
    }
  }
  const size_t grid = 3 * (18 + 4 + 2), ablation = 16;
  EXPECT_EQ(runs, grid + ablation);
}

// So that a sweep trains them once.
TEST(SweepTest, ThePapersAblationEndsInRunsOfItsOtherFiles) {
  const std::filesystem::path folder =
      std::filesystem::path(FEDSMOOTH_SOURCE) / "experiments/paper";
  std::map<std::string, std::string> runs;
  for (const char* file : {"homogeneous.toml", "heterogeneous.toml", "ablation.toml"}) {
    for (const auto& [name, e] : expand(read_sweep(folder / file))) {
      runs[name] = format_experiment(e);
    }
  }
  for (const std::string sigma : {"0.25", "0.5"}) {
    EXPECT_EQ(runs.at("ablation-gamma0.1-smoothadv-sigma" + sigma),
              runs.at("homogeneous-sigma" + sigma + "-epsilon0.5-stochastic"));
    EXPECT_EQ(runs.at("ablation-gamma0.5-smoothadv-sigma" + sigma),
              runs.at("heterogeneous-sigma" + sigma + "-epsilon0.5-stochastic"));
  }
}

TEST(SweepTest, IsNoSingleExperiment) {
  EXPECT_EQ(refusal([&] { parse_experiment(kGrid, "e.toml"); }),
            "e.toml: has a [sweep] of 8 experiments; run them by `fedsmooth sweep e.toml`");
}

}  // namespace
}  // namespace fedsmooth
