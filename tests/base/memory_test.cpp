#include "fedsmooth/base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

#include "fedsmooth/base/file.h"
#include "tests/folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { remove_folder(root_); }
  void TearDown() override { remove_folder(root_); }
  void write(const std::string& path, const std::string& text) const {
    write_file(root_ / path, text);
  }

  const fs::path root_ =
      fs::temp_directory_path() / ("fedsmooth_memory_" + std::to_string(::getpid()));
};

TEST_F(MemoryTest, ReportsSomeMemory) {
  EXPECT_GT(available_memory(), 1 << 20);
  EXPECT_LT(available_memory(), int64_t{1} << 50);
}

TEST_F(MemoryTest, IsUnlimitedWhereNothingIsKnown) {
  EXPECT_EQ(available_memory(root_), std::numeric_limits<int64_t>::max());
}

TEST_F(MemoryTest, IsTheSmallestLimitOfMachineAndGroups) {
  write("proc/meminfo", "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:   5000 kB\n");
  EXPECT_EQ(available_memory(root_), 5000 * 1024);
  write("proc/self/cgroup", "0::/jobs/mine\n");
  write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/mine/memory.current", "700000\n");
  EXPECT_EQ(available_memory(root_), 5000 * 1024);
  write("sys/fs/cgroup/jobs/memory.max", "3000000\n");
  write("sys/fs/cgroup/jobs/memory.current", "1000000\n");
  EXPECT_EQ(available_memory(root_), 2000000);
  write("sys/fs/cgroup/jobs/memory.stat", "anon 5\ninactive_file 400000\n");
  EXPECT_EQ(available_memory(root_), 2400000);
  write("sys/fs/cgroup/memory.max", "900000\n");
  write("sys/fs/cgroup/memory.current", "1000000\n");
  EXPECT_EQ(available_memory(root_), 0);
}

}  // namespace
}  // namespace fedsmooth
