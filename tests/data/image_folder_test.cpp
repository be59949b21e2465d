#include <gtest/gtest.h>
#include <png.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/data/sources.h"
#include "tests/folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

/// A tree with two classes, three training images and two test images; each test changes it.
class ImageFolderTest : public testing::Test {
 protected:
  ImageFolderTest() {
    write_png("train/cat/b.png", 2);
    write_png("train/cat/a.PNG", 1);
    write_png("train/ant/x.jpeg", 3);  // the decoder goes by the content
    write_png("test/cat/t.jpg", 5);
    write_png("test/ant/t.png", 4);
  }
  ~ImageFolderTest() override { remove_folder(root_); }

  /// A picture of one grey value.
  void write_png(const fs::path& name, uint8_t value, uint32_t width = 6, uint32_t height = 4) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width;
    image.height = height;
    image.format = PNG_FORMAT_GRAY;
    const std::vector<uint8_t> pixels(width * height, value);
    fs::create_directories((root_ / name).parent_path());
    ASSERT_TRUE(
        png_image_write_to_file(&image, (root_ / name).c_str(), 0, pixels.data(), 0, nullptr));
  }

  /// Reading `split` fails with a message that begins with the path `name` and has `what` in it.
  void expect_refused(Split split, const fs::path& name, const std::string& what) const {
    try {
      read_image_folder(root_, split);
      ADD_FAILURE() << name << " was not refused";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with((root_ / name).string() + ": ")) << message;
      EXPECT_PRED_FORMAT2(testing::IsSubstring, what, message);
    }
  }

  const fs::path root_ = fs::path(testing::TempDir()) /
                         fmt::format("image_folder_test.{}",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ImageFolderTest, ReadsClassesAndFilesInTheOrderOfTheirNames) {
  const Dataset train = read_image_folder(root_, Split::kTrain);
  EXPECT_EQ(train.class_names, (std::vector<std::string>{"ant", "cat"}));
  EXPECT_EQ(train.images.sizes(), (Sizes{3, 3, 4, 6}));
  EXPECT_EQ(train.labels, (std::vector<int64_t>{0, 1, 1}));
  const int values[] = {3, 1, 2};
  for (int64_t i = 0; i < train.images.count(); ++i) {
    EXPECT_EQ(train.images.bytes()[i], values[i / (3 * 4 * 6)]) << i;
  }

  const Dataset test = read_image_folder(root_, Split::kTest);
  EXPECT_EQ(test.labels, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(test.images[1][0][0].bytes()[0], 5);
}

TEST_F(ImageFolderTest, IgnoresHiddenFilesAndOtherEndings) {
  write_file(root_ / "train/cat/.a.png", "hidden");
  write_file(root_ / "train/cat/notes.txt", "no image");
  write_file(root_ / "train/README", "no class");
  fs::create_directories(root_ / "train/.cache");
  EXPECT_EQ(read_image_folder(root_, Split::kTrain).size(), 3);
}

TEST_F(ImageFolderTest, RefusesAFileWithAnImageEndingThatIsNotAnImage) {
  write_file(root_ / "train/cat/c.JPG", "no image");
  expect_refused(Split::kTrain, "train/cat/c.JPG", "neither PNG nor JPEG");
}

TEST_F(ImageFolderTest, RefusesClassesThatOnlyOneHalfHas) {
  write_png("test/bee/t.png", 1);
  expect_refused(Split::kTest, "train/bee", "the same classes");
  remove_folder(root_ / "test/bee");
  write_png("train/dog/t.png", 1);
  expect_refused(Split::kTrain, "test/dog", "the same classes");
}

TEST_F(ImageFolderTest, RefusesAnImageOfAnotherSize) {
  write_png("train/cat/c.png", 1, /*width=*/4, /*height=*/6);
  expect_refused(Split::kTrain, "train/cat/c.png", "4x6 pixels");
}

TEST_F(ImageFolderTest, RefusesAClassWithoutImages) {
  fs::remove(root_ / "test/cat/t.jpg");
  expect_refused(Split::kTest, "test/cat", "no images");
}

TEST_F(ImageFolderTest, RefusesAHalfThatIsEmptyOrMissing) {
  remove_folder(root_ / "test/cat");
  remove_folder(root_ / "test/ant");
  expect_refused(Split::kTest, "test", "no class folders");
  remove_folder(root_ / "test");
  expect_refused(Split::kTest, "test", "No such file or directory");
}

TEST_F(ImageFolderTest, TrainingImagesNeedNoTestImages) {
  remove_folder(root_ / "test");
  EXPECT_EQ(read_image_folder(root_, Split::kTrain).labels, (std::vector<int64_t>{0, 1, 1}));
}

}  // namespace
}  // namespace fedsmooth
