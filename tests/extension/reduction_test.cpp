// A reduction of one's own, from an experiment file to a trained model, in this file alone.
#include <gtest/gtest.h>

#include "fedsmooth/fedsmooth.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

// The weights of the kept client with the smallest number.
Reduction first_client() {
  return {"first-client", Gather::kEach,
          [](const AggregateOptions&, const RoundResult& cohort, const Weights&) {
            return cohort.each.front().weights;
          }};
}

const bool kAdded = (reductions().add(first_client()), true);

class ReductionTest : public JobTest {};

TEST_F(ReductionTest, TrainsTheSameOnAnyThreads) {
  ASSERT_TRUE(kAdded);
  Experiment e = small_experiment();
  const jobs::TrainedRun mean = jobs::train({e, path("mean")}, context_);
  set_key(e, "aggregate.kind", "first-client");
  const jobs::TrainedRun whole = jobs::train({e, path("whole")}, context_);
  EXPECT_NE(whole.model_sha256, mean.model_sha256);
  context_.threads = 3;
  EXPECT_EQ(jobs::train({e, path("threads")}, context_).model_sha256, whole.model_sha256);
}

}  // namespace
}  // namespace fedsmooth
