// Servers and reductions in run folders: resumed to the same bits, refused where state is missing.
#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "fedsmooth/federated/train.h"
#include "fedsmooth/jobs/training.h"
#include "fedsmooth/model/safetensors.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class ServerTest : public JobTest {
 protected:
  // Stops after its second round, if asked to.
  std::string train(const Experiment& e, const std::string& name, bool stops = false) {
    bool stop = false;
    context_.stopped = [&] { return stop; };
    const auto model = [&] {
      return jobs::train({e, path(name), /*resume=*/true,
                          [&](const RoundRow& row) { stop = stops && row.round == 1; }},
                         context_)
          .model_sha256;
    };
    if (!stops) return model();
    EXPECT_THROW(model(), Interrupted);
    EXPECT_FALSE(fs::exists(path(name) / "DONE"));
    return "";
  }

  void expect_resumes(const Experiment& e, const std::string& name) {
    SCOPED_TRACE(name);
    const std::string whole = train(e, name + "-whole");
    train(e, name + "-cut", /*stops=*/true);
    EXPECT_EQ(train(e, name + "-cut"), whole);
  }
};

TEST_F(ServerTest, EveryRuleResumesToTheSameBits) {
  for (const std::string& name : server_optimizers().names()) {
    Experiment e = small_experiment();
    e.train.server.optimizer = name;
    e.train.server.learning_rate = 0.01;
    expect_resumes(e, name);
  }
}

TEST_F(ServerTest, EveryReductionResumesToTheSameBits) {
  for (const std::string& name : reductions().names()) {
    Experiment e = small_experiment();
    e.train.clients_per_round = 4;
    e.train.aggregate.kind = name;
    expect_resumes(e, name);
  }
}

TEST_F(ServerTest, ClustersAndBadClientsResumeToTheSameBits) {
  Experiment e = small_experiment();
  e.train.server.clusters = 2;
  e.train.byzantine = {.share = 0.5, .kind = ByzantineKind::kNoise, .scale = 0.01};
  expect_resumes(e, "clusters");
}

// The key that 0.1 had, and what it reads as.
TEST_F(ServerTest, ServerMomentumIsTheMomentumRule) {
  Experiment old = small_experiment(), now = old;
  set_key(old, "train.server_momentum", "0.5");
  set_key(now, "server.optimizer", "momentum");
  set_key(now, "server.momentum", "0.5");
  EXPECT_EQ(format_experiment(old), format_experiment(now));
  const std::string model = train(now, "now");
  EXPECT_EQ(train(old, "now"), model);  // the same run
  set_key(old, "train.server_momentum", "0.0");
  EXPECT_EQ(format_experiment(old), format_experiment([&] {
              Experiment plain = now;
              plain.train.server.optimizer = "average";
              return plain;
            }()));
}

TEST_F(ServerTest, RefusesACheckpointWithOtherState) {
  Experiment e = small_experiment();
  e.train.server.optimizer = "adam";
  e.train.server.learning_rate = 0.01;
  train(e, "run", /*stops=*/true);
  const fs::path file = path("run") / "checkpoint" / "state.safetensors";
  const Safetensors good = parse_safetensors(read_file(file), "good");
  const auto rewrite = [&](const auto& change) {
    Safetensors other = good;
    other.metadata.erase("checksum");
    change(other.tensors);
    write_file(file, format_safetensors(other));
  };
  rewrite([](auto& tensors) { tensors.erase(tensors.lower_bound("u.")); });
  expect_error([&] { train(e, "run"); }, "tensor u.");
  rewrite([](auto& tensors) { tensors["velocity.x"] = tensors.begin()->second; });
  expect_error([&] { train(e, "run"); }, "server.optimizer=\"adam\"");
  rewrite([](auto&) {});
  train(e, "run");
}

TEST_F(ServerTest, RefusesBeforeAFolderIsMade) {
  Experiment e = small_experiment();
  e.train.server.optimizer = "yogi";
  expect_error([&] { train(e, "x"); }, "server.learning_rate");
  EXPECT_FALSE(fs::exists(path("x")));
}

}  // namespace
}  // namespace fedsmooth
