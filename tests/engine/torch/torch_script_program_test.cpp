// TorchScript modules, as a user runs them.
#include <gtest/gtest.h>

#include "tests/cli/certify_program.h"

#ifdef FEDSMOOTH_TORCH
#include <torch/script.h>

#include "fedsmooth/records/attacks.h"
#endif

namespace fedsmooth {
namespace {

using TorchScriptProgramTest = CertifyProgramTest;

#ifdef FEDSMOOTH_TORCH

// A module that answers class 2, and class 3 after `calls` batches.
void save_changing(const std::string& path, int calls) {
  torch::jit::Module module("M");
  module.register_attribute("calls", c10::IntType::get(), 0);
  module.register_attribute("last", c10::IntType::get(), calls);
  module.register_attribute("training", c10::BoolType::get(), false);
  module.define(R"(
def forward(self, x):
    self.calls = self.calls + 1
    answer = 2
    if self.calls > self.last:
        answer = 3
    logits = torch.zeros([x.size(0), 10])
    logits[:, answer] = 1.0
    return logits
)");
  module.save(path);
}

TEST_F(TorchScriptProgramTest, ATableWhoseClassifierChangedIsVoid) {
  // The check takes 6 batches, an image of n = 20,000 takes 106 and the probe one.
  save_changing(path("m.pt"), 6 + 3 * 107 + 50);
  const std::string command = "certify " + path("m.pt") +
                              " --data.name=shapes --sigma 0.25 --device cpu --threads 1 --out " +
                              path("t.tsv") + " --limit 8 --n 20000 ";
  expect_refused(run(command), "its answers changed while it was certified; the table is void");
  EXPECT_EQ(std::string_view(read_file(path("t.tsv"))).substr(0, 3), "idx");
  const std::string table = read_file(path("t.tsv"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 3 + 1);  // three rows were probed
  expect_refused(run(command + "--resume"), "is void");
  expect_refused_by_all(path("t.tsv"), "is void");
}

// Class 1 where the mean of all pixels is above a half: the attack brightens or darkens.
TEST_F(TorchScriptProgramTest, AttacksReachTheModule) {
  torch::jit::Module module("M");
  module.register_attribute("training", c10::BoolType::get(), false);
  module.define(R"(
def forward(self, x):
    bright = 40 * (x.mean([1, 2, 3]) - 0.5)
    return torch.stack([-bright, bright] + [torch.full_like(bright, -9.0)] * 8, 1)
)");
  module.save(path("bright.pt"));
  const Outcome done = run("attack " + path("bright.pt") +
                           " --data.name=shapes --sigma 0.1 --limit 20 --every 10 --n 100 --m 2"
                           " --steps 2 --epsilon 0.5,30 --out " +
                           path("a.tsv"));
  ASSERT_EQ(done.status, 0) << done.err;
  int64_t moved = 0;
  for (const AttackRow& row : read_attacks(path("a.tsv"))) {
    if (row.epsilon != 0.5 || !row.correct()) continue;
    EXPECT_GT(row.perturbation, 0.3);
    ++moved;
  }
  EXPECT_GT(moved, 0);
}

#else

TEST_F(TorchScriptProgramTest, IsRefusedWithHowToGetIt) {
  write_file(path("m.pt"), "a module");
  const std::string options = " --data.name=shapes --sigma 0.25 --out " + path("t.tsv");
  for (const std::string command : {"certify ", "attack "}) {
    const Outcome refused = run(command + path("m.pt") + options);
    expect_refused(refused, "m.pt: TorchScript needs LibTorch, which this build lacks");
    EXPECT_NE(refused.err.find("make TORCH=debian"), std::string::npos) << refused.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("t.tsv")));
}

#endif

}  // namespace
}  // namespace fedsmooth
