#include "fedsmooth/data/dataset.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"

namespace fedsmooth {
namespace {

Dataset two_images() {
  Array pixels({2, 3, 2, 4}, Array::Type::kByte);
  for (int64_t i = 0; i < pixels.count(); ++i) pixels.bytes()[i] = static_cast<uint8_t>(5 * i);
  return {pixels, {1, 0}, {"left", "right"}};
}

TEST(DatasetTest, ScalesBytesToTheUnitInterval) {
  Dataset data = two_images();
  data.images[1][0][0].bytes()[0] = 0;
  data.images[1][2][1].bytes()[3] = 255;
  const Array image = data.image(1);
  EXPECT_EQ(image.sizes(), (Sizes{3, 2, 4}));
  EXPECT_EQ(data.shape(), image.sizes());
  EXPECT_EQ(image.type(), Array::Type::kFloat);
  EXPECT_EQ(image[0][0].floats()[0], 0.0f);
  EXPECT_EQ(image[2][1].floats()[3], 1.0f);
  EXPECT_EQ(image[0][0].floats()[1], 125 / 255.0f);
  EXPECT_EQ(data.label(0), 1);
}

TEST(DatasetTest, DigestChangesWithAPixelALabelAndTheShape) {
  const std::string original = digest(two_images());
  EXPECT_EQ(digest(two_images()), original);

  Dataset data = two_images();
  data.images[1][2][0].bytes()[3] += 1;
  EXPECT_NE(digest(data), original);

  data = two_images();
  data.labels[1] = 1;
  EXPECT_NE(digest(data), original);

  data = two_images();
  data.images = data.images.with_sizes({2, 3, 4, 2});
  EXPECT_NE(digest(data), original);
}

TEST(DatasetTest, DigestDoesNotDependOnTheBuffer) {
  Dataset part = two_images(), alone = part;
  part.images = part.images.part(1, 1);
  alone.images = part.images.clone();
  EXPECT_EQ(digest(part), digest(alone));
}

TEST(DatasetTest, LoadsTheBuiltInShapes) {
  const Dataset test = load_dataset({.name = "shapes"}, Split::kTest);
  EXPECT_EQ(test.images.sizes(), (Sizes{2000, 3, 32, 32}));
  EXPECT_EQ(test.classes(), 10);
  EXPECT_EQ(load_dataset({.name = "shapes"}, Split::kTrain).size(), 10'000);
}

TEST(DatasetTest, HeldOutImagesReplaceTheTestImages) {
  const Dataset all = load_dataset({.name = "shapes"}, Split::kTrain);
  const DataOptions options{.name = "shapes", .held_out = 3'000};
  const Dataset train = load_dataset(options, Split::kTrain);
  const Dataset test = load_dataset(options, Split::kTest);
  ASSERT_EQ(train.size(), 7'000);
  ASSERT_EQ(test.size(), 3'000);
  EXPECT_EQ(test.class_names, all.class_names);
  // Of ten images the first, the fourth and the seventh.
  int64_t held = 0, left = 0;
  for (int64_t i = 0; i < all.size(); ++i) {
    const bool is_held = i % 10 == 0 || i % 10 == 3 || i % 10 == 6;
    const Dataset& half = is_held ? test : train;
    const int64_t place = is_held ? held++ : left++;
    ASSERT_TRUE(same_bits(half.images[place], all.images[i])) << i;
    ASSERT_EQ(half.label(place), all.label(i)) << i;
  }
  EXPECT_EQ(refusal([] { load_dataset({.name = "shapes", .held_out = 10'000}, Split::kTest); }),
            "data.held_out=10000: there are 10000 training images");
}

TEST(DatasetTest, PassesTheRootToTheReaders) {
  for (const char* name : {"cifar10", "cifar100", "idx", "arrays", "image-folder"}) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, "/nowhere", refusal([&] {
                          load_dataset({.name = name, .root = "/nowhere"}, Split::kTest);
                        }));
  }
}

TEST(DatasetTest, RefusesAnUnknownNameWithTheKnownOnes) {
  const std::string message = refusal([] { load_dataset({.name = "mnist"}, Split::kTest); });
  for (const char* part :
       {"mnist", "cifar10", "cifar100", "idx", "arrays", "image-folder", "shapes"}) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, part, message);
  }
}

}  // namespace
}  // namespace fedsmooth
