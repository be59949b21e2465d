#include <gtest/gtest.h>

#include <set>

#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

/// How many of every `step`-th label are of each of the ten classes.
std::vector<int64_t> count_classes(const std::vector<int64_t>& labels, size_t step) {
  std::vector<int64_t> counts(10, 0);
  for (size_t i = 0; i < labels.size(); i += step) ++counts.at(labels[i]);
  return counts;
}

TEST(ShapesTest, GivesEveryClassTheSameNumberOfImages) {
  const Dataset data = make_shapes(Split::kTrain, 50, 0);
  EXPECT_EQ(data.images.sizes(), (Sizes{50, 3, 32, 32}));
  EXPECT_EQ(count_classes(data.labels, 1), std::vector<int64_t>(10, 5));
  const std::set<std::string> names(data.class_names.begin(), data.class_names.end());
  EXPECT_EQ(names.size(), 10u);
}

// Certification takes every 20th image by default; a data set sorted by class would show it one
// class.
TEST(ShapesTest, ShowsAllClassesInEveryTwentiethImage) {
  for (const int64_t count : count_classes(make_shapes(Split::kTest, 2000, 0).labels, 20)) {
    EXPECT_GE(count, 2);
  }
}

// Experiments name this data by (split, count, seed) only: a change of one byte is a new data set.
TEST(ShapesTest, HasThePinnedBytes) {
  EXPECT_EQ(digest(make_shapes(Split::kTest, 100, 0)),
            "1facda423250a77298302b43213873b8c5d8365d6a345c0f85bd90d94edb7fac");
}

TEST(ShapesTest, AnImageDoesNotDependOnTheCount) {
  const Dataset few = make_shapes(Split::kTrain, 7, 3), many = make_shapes(Split::kTrain, 20, 3);
  EXPECT_TRUE(same_bits(few.images, many.images.part(0, 7)));
  EXPECT_EQ(few.labels, std::vector<int64_t>(many.labels.begin(), many.labels.begin() + 7));
}

TEST(ShapesTest, DrawsDifferentImagesForEverySeedSplitAndIndex) {
  std::set<std::string> digests;
  for (const Split split : {Split::kTrain, Split::kTest}) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
      const Dataset data = make_shapes(split, 20, seed);
      for (int64_t i = 0; i < 20; ++i) {
        digests.insert(digest({data.images.part(i, 1), {0}, {}}));
      }
    }
  }
  EXPECT_EQ(digests.size(), 2u * 3u * 20u);
}

}  // namespace
}  // namespace fedsmooth
