#include <gtest/gtest.h>

#include "fedsmooth/data/sources.h"
#include "tests/data/archives.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

struct Members {
  std::string type = "|u1";
  Sizes images = {2, 2, 4};
  Sizes labels = {2};
  std::string label_bytes = std::string("\0\2", 2);
};

// Training images as `m` says, one test image of label 1.
std::string make_file(const Members& m) {
  const auto width = static_cast<int64_t>(m.type == "|u1" ? 1 : 4);
  Sizes one = m.images;
  one[0] = 1;
  return make_zip(
      {{"x_train.npy", make_npy(m.type, m.images, ramp_bytes(width * count_of(m.images)))},
       {"y_train.npy", make_npy("|u1", m.labels, m.label_bytes)},
       {"x_test.npy", make_npy(m.type, one, ramp_bytes(width * count_of(one)))},
       {"y_test.npy", make_npy("<i8", {1}, little(1, 8))}},
      true);
}

TEST(ArraysTest, TakesGreyImagesAndLabels) {
  const std::string file = make_file({});
  const Dataset train = parse_arrays(file, Split::kTrain, "f.npz");
  EXPECT_EQ(train.images.sizes(), (Sizes{2, 1, 2, 4}));
  EXPECT_EQ(train.labels, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(train.classes(), 3);
  const Dataset test = parse_arrays(file, Split::kTest, "f.npz");
  EXPECT_EQ(test.images.sizes(), (Sizes{1, 1, 2, 4}));
  EXPECT_EQ(test.labels, (std::vector<int64_t>{1}));
  EXPECT_EQ(test.class_names, train.class_names);
}

TEST(ArraysTest, TakesChannelsFirstOrLast) {
  const Dataset first = parse_arrays(make_file({.images = {2, 3, 4, 5}}), Split::kTrain, "f");
  const Dataset last = parse_arrays(make_file({.images = {2, 4, 5, 3}}), Split::kTrain, "f");
  EXPECT_EQ(first.images.sizes(), (Sizes{2, 3, 4, 5}));
  EXPECT_EQ(last.images.sizes(), first.images.sizes());
  const std::string bytes = ramp_bytes(2 * 3 * 4 * 5);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t i = 0; i < 20; ++i) {
        ASSERT_EQ(first.images[n][c].bytes()[i], static_cast<uint8_t>(bytes[(n * 3 + c) * 20 + i]));
        ASSERT_EQ(last.images[n][c].bytes()[i], static_cast<uint8_t>(bytes[(n * 20 + i) * 3 + c]));
      }
    }
  }
  // Both could be meant: channels come first.
  EXPECT_EQ(
      parse_arrays(make_file({.images = {2, 3, 3, 3}}), Split::kTrain, "f").images[0][0].bytes()[1],
      7);
}

TEST(ArraysTest, TakesLabelsInAColumn) {
  EXPECT_EQ(parse_arrays(make_file({.labels = {2, 1}}), Split::kTrain, "f").labels,
            (std::vector<int64_t>{0, 2}));
}

TEST(ArraysTest, RefusalsAreOneLine) {
  const auto refused = [](const Members& m, Split split) {
    return refusal([&] { parse_arrays(make_file(m), split, "f.npz"); });
  };
  EXPECT_EQ(refused({.type = "<f4"}, Split::kTrain),
            "f.npz: x_train: values of type \"<f4\", expected bytes; save (255 * "
            "x).round().astype('uint8')");
  EXPECT_EQ(refused({.images = {2, 8}}, Split::kTrain),
            "f.npz: x_train: shape (2, 8), expected [N, H, W], [N, C, H, W] or [N, H, W, C]");
  EXPECT_EQ(refused({.images = {3, 2, 2}}, Split::kTrain),
            "f.npz: y_train: 2 labels, but f.npz: x_train has 3 images; they must belong together");
  EXPECT_EQ(refused({.label_bytes = std::string(2, '\0')}, Split::kTest),
            "f.npz: y_test: has label 1, but the largest in f.npz: y_train is 0");
  EXPECT_EQ(refusal([] { read_arrays("/tmp", Split::kTest); }),
            "/tmp: a folder; data.root must be the .npz file itself");
}

}  // namespace
}  // namespace fedsmooth
