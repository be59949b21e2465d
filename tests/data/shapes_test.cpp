#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

TEST(ShapesTest, GivesEveryClassTheSameNumberOfImages) {
  const Dataset data = make_shapes(Split::kTrain, 50, 0);
  EXPECT_EQ(data.images.sizes(), at::IntArrayRef({50, 3, 32, 32}));
  EXPECT_TRUE(at::equal(data.labels.bincount(), at::full({10}, 5, at::kLong)));
  const std::set<std::string> names(data.class_names.begin(), data.class_names.end());
  EXPECT_EQ(names.size(), 10u);
}

// Certification takes every 20th image by default; a data set sorted by class would show it one
// class.
TEST(ShapesTest, ShowsAllClassesInEveryTwentiethImage) {
  const Tensor labels = make_shapes(Split::kTest, 2000, 0).labels.slice(0, 0, 2000, 20);
  EXPECT_TRUE(labels.bincount({}, 10).ge(2).all().item<bool>()) << labels.bincount();
}

// Experiments name this data by (split, count, seed) only: a change of one byte is a new data set.
TEST(ShapesTest, HasThePinnedBytes) {
  EXPECT_EQ(digest(make_shapes(Split::kTest, 100, 0)),
            "1facda423250a77298302b43213873b8c5d8365d6a345c0f85bd90d94edb7fac");
}

TEST(ShapesTest, DrawsAnImageWhateverTheCount) {
  const Dataset few = make_shapes(Split::kTrain, 7, 3), many = make_shapes(Split::kTrain, 20, 3);
  EXPECT_TRUE(at::equal(few.images, many.images.narrow(0, 0, 7)));
  EXPECT_TRUE(at::equal(few.labels, many.labels.narrow(0, 0, 7)));
}

TEST(ShapesTest, DrawsDifferentImagesForEverySeedSplitAndIndex) {
  std::set<std::string> digests;
  for (const Split split : {Split::kTrain, Split::kTest}) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
      const Dataset data = make_shapes(split, 20, seed);
      for (int64_t i = 0; i < 20; ++i) {
        digests.insert(digest({data.images.narrow(0, i, 1), at::zeros({1}, at::kLong), {}}));
      }
    }
  }
  EXPECT_EQ(digests.size(), 2u * 3u * 20u);
}

}  // namespace
}  // namespace fedsmooth
