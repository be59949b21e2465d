#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/this_gpu.h"

#include <gtest/gtest.h>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

using ThisGpuTest = GpuTest;

// Each answer is about the GPU that the thread uses when it asks, with several GPUs too.
TEST_F(ThisGpuTest, IsTheOneThatTheThreadUses) {
  const int before = current_gpu();
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int gpu = 0; gpu < count; ++gpu) {
    const OnGpu on(gpu);
    EXPECT_EQ(current_gpu(), gpu);
    cudaDeviceProp properties;
    check_cuda(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
    EXPECT_EQ(compute_capability(), 10 * properties.major + properties.minor);
    EXPECT_EQ(multiprocessors(), properties.multiProcessorCount);
    EXPECT_EQ(shared_memory_limit(), static_cast<int>(properties.sharedMemPerBlockOptin));
  }
  EXPECT_EQ(current_gpu(), before);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(ThisGpuTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
