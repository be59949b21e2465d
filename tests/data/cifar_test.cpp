#include <gtest/gtest.h>

#include <algorithm>

#include "fedsmooth/base/file.h"
#include "fedsmooth/data/sources.h"
#include "tests/folder.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecords = 10'000;
constexpr int64_t kRecordBytes = 3073;

/// Record i has label i % 10 and pixels that identify the batch, the record and the position.
std::string batch_bytes(int64_t batch) {
  std::string bytes(kRecords * kRecordBytes, '\0');
  for (int64_t i = 0; i < kRecords; ++i) {
    char* record = bytes.data() + i * kRecordBytes;
    record[0] = static_cast<char>(i % 10);
    for (int64_t j = 1; j < kRecordBytes; ++j) {
      record[j] = static_cast<char>(31 * batch + 7 * i + j / 3);
    }
  }
  return bytes;
}

class Cifar10Test : public testing::Test {
 protected:
  Cifar10Test() { fs::create_directories(root_); }
  ~Cifar10Test() override { remove_folder(root_); }

  void expect_refused(Split split, const fs::path& path, const std::string& what) const {
    const std::string message = refusal([&] { read_cifar10(root_, split); });
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, what, message);
  }

  const fs::path root_ =
      fs::path(testing::TempDir()) /
      fmt::format("cifar10_test.{}", testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Cifar10Test, ReadsTheFiveTrainingFilesInOrder) {
  for (int batch = 1; batch <= 5; ++batch) {
    write_file(root_ / fmt::format("data_batch_{}.bin", batch), batch_bytes(batch));
  }
  const Dataset data = read_cifar10(root_, Split::kTrain);
  EXPECT_EQ(data.images.sizes(), (Sizes{50'000, 3, 32, 32}));
  ASSERT_EQ(data.size(), 50'000);
  for (int64_t i = 0; i < 50'000; ++i) EXPECT_EQ(data.label(i), i % 10) << i;
  for (const int64_t index : {0, 9'999, 10'000, 49'999}) {
    const int64_t batch = index / kRecords + 1, record = index % kRecords;
    const int64_t position = 1 + 1024 * 2 + 32 * 5 + 17;  // channel 2, row 5, column 17
    EXPECT_EQ(data.images[index][2][5].bytes()[17], (31 * batch + 7 * record + position / 3) % 256)
        << index;
  }
}

TEST_F(Cifar10Test, FindsTheTestFileInTheFolderOfTheArchive) {
  write_file(root_ / "cifar-10-batches-bin" / "test_batch.bin", batch_bytes(0));
  const Dataset data = read_cifar10(root_, Split::kTest);
  EXPECT_EQ(data.size(), 10'000);
  EXPECT_EQ(data.classes(), 10);
  EXPECT_EQ(data.class_names[9], "truck");
}

TEST_F(Cifar10Test, RefusesAMissingFile) {
  expect_refused(Split::kTest, root_ / "test_batch.bin", "no such file");
  write_file(root_ / "data_batch_1.bin", batch_bytes(1));
  expect_refused(Split::kTrain, root_ / "data_batch_2.bin", "no such file");
}

TEST_F(Cifar10Test, RefusesAFileThatIsAByteTooShortOrTooLong) {
  std::string bytes = batch_bytes(0);
  bytes.pop_back();
  write_file(root_ / "test_batch.bin", bytes);
  expect_refused(Split::kTest, root_ / "test_batch.bin", "30729999 bytes");
  write_file(root_ / "test_batch.bin", bytes + "ab");
  expect_refused(Split::kTest, root_ / "test_batch.bin", "30730001 bytes");
}

TEST_F(Cifar10Test, RefusesALabelAboveNine) {
  std::string bytes = batch_bytes(0);
  bytes[1234 * kRecordBytes] = 10;
  write_file(root_ / "test_batch.bin", bytes);
  expect_refused(Split::kTest, root_ / "test_batch.bin", "record 1234 has label 10");
}

TEST_F(Cifar10Test, PointsFromThePythonVersionToTheBinaryOne) {
  write_file(root_ / "cifar-10-batches-py" / "test_batch", "\x80\x02}");
  expect_refused(Split::kTest, root_ / "test_batch.bin", "`fedsmooth data cifar10 --out ");
  const fs::path inside = root_ / "cifar-10-batches-py";
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "pickles are not read",
                      refusal([&] { read_cifar10(inside, Split::kTest); }));
}

class Cifar100Test : public Cifar10Test {};

TEST_F(Cifar100Test, ReadsTheFineLabels) {
  constexpr int64_t kBytes = 3074;
  std::string bytes(kRecords * kBytes, '\0');
  for (int64_t i = 0; i < kRecords; ++i) {
    bytes[i * kBytes] = static_cast<char>(i % 20);       // coarse
    bytes[i * kBytes + 1] = static_cast<char>(i % 100);  // fine
    bytes[i * kBytes + 2] = static_cast<char>(i % 7);
    bytes[i * kBytes + kBytes - 1] = static_cast<char>(i % 11);
  }
  write_file(root_ / "cifar-100-binary" / "test.bin", bytes);
  const Dataset data = read_cifar100(root_, Split::kTest);
  EXPECT_EQ(data.images.sizes(), (Sizes{kRecords, 3, 32, 32}));
  ASSERT_EQ(data.classes(), 100);
  EXPECT_EQ(data.class_names[0], "apple");
  EXPECT_EQ(data.class_names[99], "worm");
  EXPECT_TRUE(std::ranges::is_sorted(data.class_names));
  for (int64_t i = 0; i < kRecords; ++i) ASSERT_EQ(data.label(i), i % 100) << i;
  EXPECT_EQ(data.images[123].bytes()[0], 123 % 7);
  EXPECT_EQ(data.images[123].bytes()[3071], 123 % 11);

  bytes[5 * kBytes + 1] = 100;
  write_file(root_ / "cifar-100-binary" / "test.bin", bytes);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "record 5 has label 100, the largest is 99",
                      refusal([&] { read_cifar100(root_, Split::kTest); }));
  write_file(root_ / "cifar-100-binary" / "test.bin", batch_bytes(0));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "30730000 bytes, this file of CIFAR-100 has 30740000",
                      refusal([&] { read_cifar100(root_, Split::kTest); }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "`fedsmooth data cifar100 --out " + root_.string() + "` gets it",
                      refusal([&] { read_cifar100(root_, Split::kTrain); }));
}

}  // namespace
}  // namespace fedsmooth
