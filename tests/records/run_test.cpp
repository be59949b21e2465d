// Checkpoints: what the server keeps, by name.
#include "fedsmooth/records/run.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "fedsmooth/model/safetensors.h"
#include "tests/arrays.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

const Network kLinear{"linear", {2, 1, 1}, {{Layer::Kind::kLinear, "linear", 3}}};

// fedsmooth::Run is spelt out, as testing::Test has a Run() of its own.
class RunTest : public JobTest {
 protected:
  fedsmooth::Run run_with(const std::string& optimizer) const {
    fedsmooth::Run run{path("run"), {}};
    run.experiment.train.server = {.optimizer = optimizer, .learning_rate = 0.1};
    return run;
  }

  // After two rounds.
  static ServerState state_of(const fedsmooth::Run& run) {
    ServerState state{2, {uniform({3, 2}, 1), uniform({3}, 2)}, {}};
    for (const uint64_t round : {3, 5}) {
      server_step(run.experiment.train.server, kLinear,
                  {uniform({3, 2}, round), uniform({3}, round + 1)}, state.global, state.kept);
    }
    return state;
  }

  // Gives the tensors of the checkpoint another content.
  template <typename Change>
  void rewrite(const Safetensors& good, const Change& change) const {
    Safetensors other = good;
    other.metadata.erase("checksum");
    change(other.tensors);
    write_file(file(), format_safetensors(other));
  }

  std::filesystem::path file() const { return path("run") / "checkpoint" / "state.safetensors"; }
};

void expect_same(const Weights& a, const Weights& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
}

TEST_F(RunTest, ACheckpointOfEveryRuleReadsBackTheSame) {
  for (const std::string& name : server_optimizers().names()) {
    SCOPED_TRACE(name);
    const fedsmooth::Run run = run_with(name);
    const ServerState state = state_of(run);
    EXPECT_EQ(state.kept.size(), server_optimizers().find(name).state.size());
    write_checkpoint(run, kLinear, state, {});
    const ServerState read = read_checkpoint(run, kLinear, {});
    EXPECT_EQ(read.round, 2);
    expect_same(read.global, state.global);
    ASSERT_EQ(read.kept.size(), state.kept.size());
    for (const auto& [what, weights] : state.kept) expect_same(read.kept.at(what), weights);
  }
}

TEST_F(RunTest, ACentralizedRunsMomentumReadsBackAndIsMissed) {
  fedsmooth::Run run = run_with("average");
  run.experiment.train.mode = Mode::kCentralized;
  ServerState state = state_of(run);
  write_checkpoint(run, kLinear, state, {});
  expect_error([&] { read_checkpoint(run, kLinear, {}); }, "lost a centralized run's momentum");
  state.velocity = {uniform({3, 2}, 7), uniform({3}, 8)};
  write_checkpoint(run, kLinear, state, {});
  expect_same(read_checkpoint(run, kLinear, {}).velocity, state.velocity);
  run.experiment.train.mode = Mode::kFederated;
  expect_error([&] { read_checkpoint(run, kLinear, {}); }, "train.mode is \"centralized\" there");
}

// As versions before named state wrote it: velocity.* beside global.*.
TEST_F(RunTest, MomentumKeepsTheTensorsThatItAlwaysHad) {
  const fedsmooth::Run run = run_with("momentum");
  write_checkpoint(run, kLinear, state_of(run), {});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parse_safetensors(read_file(file()), "").tensors) {
    names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"global.linear.bias", "global.linear.weight",
                                             "velocity.linear.bias", "velocity.linear.weight"}));
}

TEST_F(RunTest, RefusesACheckpointWithOtherState) {
  const fedsmooth::Run run = run_with("adam");
  write_checkpoint(run, kLinear, state_of(run), {});
  const Safetensors good = parse_safetensors(read_file(file()), "");
  const auto read = [&] { read_checkpoint(run, kLinear, {}); };
  rewrite(good, [](auto& tensors) { tensors.erase("u.linear.bias"); });
  expect_error(read, "tensor u.linear.bias is missing");
  rewrite(good, [](auto& tensors) { tensors["velocity.linear.bias"] = Array({3}); });
  expect_error(read, "has 7 tensors, server.optimizer=\"adam\" has 6");
  rewrite(good, [](auto& tensors) { tensors["v.linear.bias"] = Array({4}); });
  expect_error(read, "another shape");
  rewrite(good, [](auto&) {});
  read();
}

}  // namespace
}  // namespace fedsmooth
