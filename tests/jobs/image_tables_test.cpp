#include "fedsmooth/jobs/training/image_tables.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "fedsmooth/model/safetensors.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class ImageTablesTest : public TrainingJobTest {
 protected:
  ImageTablesTest() {
    experiment_.data.held_out = 9970;  // 30 are left
    experiment_.partition.kind = PartitionKind::kIid;
    experiment_.train.method = Method::kSun;
    experiment_.train.rounds = 24;  // 6.25 epochs each: the last 14 are late, with 9 tables
    experiment_.train.checkpoint_every = 2;
  }

  // Ends the process's run after a round, as if it were killed: the last checkpoint may be older.
  void cut_after(const std::string& name, int64_t rounds) {
    struct Killed {};
    const auto count = [&](const RoundRow& row) {
      if (row.round == rounds) throw Killed{};
    };
    EXPECT_THROW(jobs::train({experiment_, path(name), true, count}, context_), Killed);
  }

  fs::path tables_of(const std::string& name) const { return path(name) / "images.safetensors"; }
};

TEST_F(ImageTablesTest, AreKeptAndResumedToTheSameBits) {
  const std::string whole = train("whole");
  const Safetensors kept = parse_safetensors(read_file(tables_of("whole")), "tables");
  ASSERT_EQ(kept.tensors.size(), 9U);
  for (int64_t number = 0; number < 9; ++number) {
    const std::string name = "weights." + std::to_string(number);
    ASSERT_TRUE(kept.tensors.contains(name)) << name;
    EXPECT_EQ(kept.tensors.at(name).sizes(), (Sizes{30}));
  }
  for (int64_t i = 0; i < 30; ++i) {  // dropped for good, or not at all
    EXPECT_EQ(kept.tensors.at("weights.0").floats()[i] == 0,
              kept.tensors.at("weights.8").floats()[i] == 0);
  }
  // The checkpoint after 10 rounds is older than the last table; the 15th round draws by one that
  // the 14th made, whose weights are gone.
  for (const int64_t rounds : {11, 14}) {
    const std::string name = "cut" + std::to_string(rounds);
    cut_after(name, rounds);
    EXPECT_EQ(train(name), whole);
    EXPECT_EQ(read_file(tables_of(name)), read_file(tables_of("whole")));
  }
}

TEST_F(ImageTablesTest, OfAnotherExperimentAreRefused) {
  train("run");
  experiment_.seed = 9;
  train("other");
  experiment_.seed = 0;
  write_file(tables_of("run"), read_file(tables_of("other")));
  fs::remove(path("run") / "DONE");
  expect_error([&] { train("run"); }, "images.safetensors: is of another experiment: seed is 9");
}

TEST_F(ImageTablesTest, OfOtherDataAreRefused) {
  experiment_.train.rounds = 1;
  train("run");
  fs::remove(path("run") / "DONE");
  write_file(tables_of("run"), format_safetensors({{{"weights.1", Array({30})}}, {}}));
  expect_error([&] { train("run"); }, "images.safetensors: is of another run");
}

}  // namespace
}  // namespace fedsmooth
