#include "fedsmooth/jobs/image_tables.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "fedsmooth/jobs/training.h"
#include "fedsmooth/model/safetensors.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class ImageTablesTest : public JobTest {
 protected:
  ImageTablesTest() : experiment_(small_experiment()) {
    experiment_.data.held_out = 9880;  // 120 are left
    experiment_.train.method = Method::kSun;
    experiment_.train.rounds = 6;  // of which the last three are late, each with a table of its own
    experiment_.train.checkpoint_every = 2;
  }

  std::string train(const std::string& name) {
    return jobs::train({experiment_, path(name), /*resume=*/true}, context_).model_sha256;
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

  Experiment experiment_;
};

TEST_F(ImageTablesTest, AreKeptAndResumedToTheSameBits) {
  const std::string whole = train("whole");
  const Safetensors kept = parse_safetensors(read_file(tables_of("whole")), "tables");
  ASSERT_EQ(kept.tensors.size(), 3U);
  for (const std::string name : {"weights.1", "weights.4", "weights.6"}) {
    ASSERT_TRUE(kept.tensors.contains(name)) << name;
    EXPECT_EQ(kept.tensors.at(name).sizes(), (Sizes{120}));
  }
  for (int64_t i = 0; i < 120; ++i) {  // dropped for good, or not at all
    EXPECT_EQ(kept.tensors.at("weights.1").floats()[i] == 0,
              kept.tensors.at("weights.6").floats()[i] == 0);
  }
  // After the fifth round the checkpoint is that of the fourth, and its table is there already.
  for (const int64_t rounds : {3, 5}) {
    const std::string name = "cut" + std::to_string(rounds);
    cut_after(name, rounds);
    EXPECT_EQ(train(name), whole);
    EXPECT_EQ(read_file(tables_of(name)), read_file(tables_of("whole")));
  }
}

TEST_F(ImageTablesTest, OfOtherDataAreRefused) {
  train("run");
  fs::remove(path("run") / "DONE");
  write_file(tables_of("run"), format_safetensors({{{"weights.1", Array({120})}}, {}}));
  expect_error([&] { train("run"); }, "images.safetensors: is of another run");
}

}  // namespace
}  // namespace fedsmooth
