#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/device_memory.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/check.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

// Counting needs no GPU.
TEST(AllocationCountTest, AddsUpWhatIsNotAllocated) {
  const AllocationCount count;
  DeviceArray<float> a(1000);
  const DeviceArray<uint8_t> b(1), none(0);
  EXPECT_EQ(count.bytes(), 4096 + 512 + 512);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 1000);
  a.clear(nullptr);  // does nothing
  const std::vector<float> values(1000);
  a.upload(values.data(), 1000, nullptr);
  EXPECT_EQ(HostArray<float>(10).data(), nullptr);
  EXPECT_THROW(AllocationCount{}, Bug);
}

using DeviceMemoryTest = GpuTest;

TEST_F(DeviceMemoryTest, IsAllocatedAgainAfterACount) {
  { const AllocationCount count; }
  const DeviceArray<float> array(std::vector<float>{1, 2, 3});
  EXPECT_EQ(array.download(nullptr), (std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace fedsmooth

#endif
