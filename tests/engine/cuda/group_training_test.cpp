// Groups whose clients share waves on the GPU.
#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include "fedsmooth/engine/cuda/batched_executor.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/networks.h"
#include "tests/federated/groups_alone.h"

namespace fedsmooth {
namespace {

using GroupTrainingTest = GpuTest;

// All groups' clients share one wave, or waves of 3 that begin and end within groups.
TEST_F(GroupTrainingTest, EachGroupHasTheBitsThatItHasAlone) {
  for (const std::string name : {"small", "alexnet", "resnet8", "resnet8-gn"}) {
    const Network network = named_network(name);
    for (const Method method : {Method::kSmoothAdv, Method::kConsistency}) {
      LocalTask task{network, shapes(), /*augment=*/true, method};
      task.local = {.steps = 2, .batch = 9, .learning_rate = 0.05};
      for (const int64_t wave : {0, 3}) {
        SCOPED_TRACE(testing::Message() << name << ", waves of " << wave);
        expect_groups_end_as_alone(
            task, [wave] { return std::make_unique<BatchedExecutor>(Precision::kBfloat16, wave); });
      }
    }
  }
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(GroupTrainingTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
