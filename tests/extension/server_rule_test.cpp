// A server rule of one's own, from an experiment file to a resumed run, in this file alone.
#include <gtest/gtest.h>

#include "fedsmooth/fedsmooth.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

// The average of all rounds so far, each as it came: w <- ((t - 1) w + average) / t.
ServerOptimizer mean_of_rounds() {
  return {"mean-of-rounds",
          1.0,
          {{"rounds", [](const ServerOptions&) { return 0.0; }}},
          [](const ServerOptions&, const ServerStep& s) {
            float* t = s.state[0];
            for (int64_t i = 0; i < s.count; ++i) {
              t[i] += 1;
              s.w[i] += (s.average[i] - s.w[i]) / t[i];
            }
          }};
}

const bool kAdded = (server_optimizers().add(mean_of_rounds()), true);

class ServerRuleTest : public JobTest {};

TEST_F(ServerRuleTest, TrainsAndResumes) {
  ASSERT_TRUE(kAdded);
  Experiment e = small_experiment();
  const jobs::TrainedRun plain = jobs::train({e, path("plain")}, context_);
  set_key(e, "server.optimizer", "mean-of-rounds");
  const jobs::TrainedRun whole = jobs::train({e, path("whole")}, context_);
  EXPECT_NE(whole.model_sha256, plain.model_sha256);
  bool stop = false;
  context_.stopped = [&] { return stop; };
  const auto train_cut = [&] {
    return jobs::train({e, path("cut"), true, [&](const RoundRow& row) { stop = row.round == 1; }},
                       context_);
  };
  EXPECT_THROW(train_cut(), Interrupted);
  EXPECT_EQ(train_cut().model_sha256, whole.model_sha256);
}

}  // namespace
}  // namespace fedsmooth
