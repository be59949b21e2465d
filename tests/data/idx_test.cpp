#include "fedsmooth/data/idx.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "fedsmooth/data/sources.h"
#include "tests/data/archives.h"
#include "tests/folder.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class IdxTest : public testing::Test {
 protected:
  IdxTest() { fs::create_directories(root_); }
  ~IdxTest() override { remove_folder(root_); }

  // Five training images with labels 3 1 4 1 2, two test images with labels 0 4.
  void write_set(const fs::path& folder, const std::string& prefix = "",
                 const std::string& test = "t10k") const {
    write_file(folder / (prefix + "train-images-idx3-ubyte"), make_idx({5, 2, 3}, ramp_bytes(30)));
    write_file(folder / (prefix + "train-labels-idx1-ubyte"), make_idx({5}, "\3\1\4\1\2"));
    write_file(folder / (prefix + test + "-images-idx3-ubyte"),
               make_idx({2, 2, 3}, ramp_bytes(12)));
    write_file(folder / (prefix + test + "-labels-idx1-ubyte"),
               make_idx({2}, std::string("\0\4", 2)));
  }

  std::string refused(Split split) const {
    return refusal([&] { read_idx_folder(root_, split); });
  }

  const fs::path root_ =
      fs::path(testing::TempDir()) /
      fmt::format("idx_test.{}", testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(IdxTest, ReadsImagesAndLabels) {
  write_set(root_);
  const Dataset train = read_idx_folder(root_, Split::kTrain);
  EXPECT_EQ(train.images.sizes(), (Sizes{5, 1, 2, 3}));
  EXPECT_EQ(train.labels, (std::vector<int64_t>{3, 1, 4, 1, 2}));
  EXPECT_EQ(train.class_names, (std::vector<std::string>{"0", "1", "2", "3", "4"}));
  EXPECT_EQ(train.images[4][0][1].bytes()[2], 29 * 7);
  const Dataset test = read_idx_folder(root_, Split::kTest);
  EXPECT_EQ(test.labels, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(test.class_names, train.class_names);
}

TEST_F(IdxTest, FindsTheFilesWhereOthersPutThem) {
  for (const char* folder : {"mnist", "MNIST/raw", ""}) {
    write_set(root_ / folder);
    EXPECT_EQ(read_idx_folder(root_, Split::kTest).size(), 2) << folder;
    remove_folder(root_);
  }
  write_set(root_, "emnist-digits-", "test");
  EXPECT_EQ(read_idx_folder(root_, Split::kTest).size(), 2);
  write_set(root_, "emnist-letters-", "test");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "two files for the same thing", refused(Split::kTest));
}

TEST_F(IdxTest, NamesWhatIsMissing) {
  const std::string message = refused(Split::kTest);
  EXPECT_TRUE(message.starts_with((root_ / "t10k-images-idx3-ubyte").string() + ": ")) << message;
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "`fedsmooth data mnist --out ", message);
}

TEST_F(IdxTest, RefusesHalvesThatDoNotBelongTogether) {
  write_set(root_);
  write_file(root_ / "t10k-labels-idx1-ubyte", make_idx({3}, "\1\1\1"));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "3 labels, but", refused(Split::kTest));
  write_file(root_ / "t10k-labels-idx1-ubyte", make_idx({2}, "\1\5"));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "has label 5, but the largest in",
                      refused(Split::kTest));
  write_file(root_ / "t10k-labels-idx1-ubyte", make_idx({2, 1}, "\1\1"));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "has 2 axes, expected 1", refused(Split::kTest));
  write_file(root_ / "train-images-idx3-ubyte", make_idx({1, 4097, 1}, ramp_bytes(4097)));
  write_file(root_ / "train-labels-idx1-ubyte", make_idx({1}, "\1"));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "1x4097 pixels, the largest side allowed is 4096",
                      refused(Split::kTrain));
}

TEST(ParseIdxTest, RefusesDamagedFiles) {
  const std::string valid = make_idx({2, 3}, "abcdef");
  EXPECT_EQ(parse_idx(valid, "x").sizes(), (Sizes{2, 3}));
  for (size_t size = 0; size < valid.size(); ++size) {
    ASSERT_NE(refusal([&] { parse_idx(valid.substr(0, size), "x"); })[0], '(') << size;
  }
  EXPECT_EQ(refusal([&] { parse_idx(valid + "g", "x"); }),
            "x: 7 bytes of values, its sizes say 2 x 3; download it again");
  // The product of these sizes is 0 in 64 bits.
  const auto huge = make_idx({1LL << 31, 1LL << 31, 1LL << 31, 1LL << 31}, "abcdef");
  EXPECT_NE(refusal([&] { parse_idx(huge, "x"); }).find("its sizes say"), std::string::npos);
  std::string floats = valid;
  floats[2] = 0x0d;
  EXPECT_EQ(refusal([&] { parse_idx(floats, "x"); }),
            "x: values of type 0x0d, only unsigned bytes (0x08) are read");
  EXPECT_EQ(refusal([&] { parse_idx(make_gzip(valid), "x"); }),
            "x: is packed; unpack it with gunzip");
}

}  // namespace
}  // namespace fedsmooth
