#include "fedsmooth/base/array.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/check.h"
#include "tests/arrays.h"

namespace fedsmooth {
namespace {

using Type = Array::Type;

/// 0 .. 23 as [4, 3, 2].
Array counted() {
  Array made({4, 3, 2});
  for (int64_t i = 0; i < made.count(); ++i) made.floats()[i] = static_cast<float>(i);
  return made;
}

TEST(ArrayTest, StartsAsZeros) {
  const Array floats({2, 3}), bytes({5}, Type::kByte), integers({1, 4}, Type::kInteger);
  EXPECT_EQ(values_of(floats), std::vector<float>(6, 0.0f));
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(bytes.bytes()[i], 0);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(integers.integers()[i], 0);
}

TEST(ArrayTest, KnowsItsSizes) {
  const Array array({2, 3, 4}, Type::kInteger);
  EXPECT_EQ(array.sizes(), (Sizes{2, 3, 4}));
  EXPECT_EQ(array.axes(), 3);
  EXPECT_EQ(array.size(1), 3);
  EXPECT_EQ(array.count(), 24);
  EXPECT_EQ(array.byte_count(), 24 * 8);
  EXPECT_EQ(Array({2, 3, 4}).byte_count(), 24 * 4);
  EXPECT_EQ(Array({2, 3, 4}, Type::kByte).byte_count(), 24);
}

TEST(ArrayTest, MayBeEmptyOrASingleNumber) {
  const Array empty({0, 3}), single(Sizes{});
  EXPECT_TRUE(empty.defined());
  EXPECT_EQ(empty.count(), 0);
  EXPECT_EQ(single.count(), 1);
  EXPECT_EQ(single.axes(), 0);
  EXPECT_THROW(single[0], Bug);
  EXPECT_FALSE(Array().defined());
}

TEST(ArrayTest, CopiesTheGivenValues) {
  EXPECT_EQ(values_of(Array::full({3}, 2.5f)), std::vector<float>(3, 2.5f));
  EXPECT_EQ(values_of(Array::of({2, 2}, {1, 2, 3, 4})), (std::vector<float>{1, 2, 3, 4}));
  const Array integers = Array::of({int64_t{1} << 40, -1});
  EXPECT_EQ(integers.sizes(), Sizes{2});
  EXPECT_EQ(integers.integers()[0], int64_t{1} << 40);
  EXPECT_EQ(integers.integers()[1], -1);
  EXPECT_THROW(Array::of({2, 2}, {1, 2, 3}), Bug);
}

TEST(ArrayTest, RefusesAccessAsAnotherType) {
  Array floats({1}), bytes({1}, Type::kByte);
  EXPECT_THROW(floats.bytes(), Bug);
  EXPECT_THROW(floats.integers(), Bug);
  EXPECT_THROW(bytes.floats(), Bug);
  EXPECT_THROW(Array().floats(), Bug);
}

TEST(ArrayTest, BuffersAreAlignedForWideVectors) {
  for (const int64_t size : {1, 7, 100}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Array({size}).floats()) % 64, 0U);
  }
}

TEST(ArrayTest, CopiesAndPartsShareTheValues) {
  Array array = counted(), copy = array, row = array[2], part = array.part(1, 2),
        flat = array.with_sizes({24});
  array.floats()[13] = -1;  // entry 2, place 1
  EXPECT_EQ(copy.floats()[13], -1);
  EXPECT_EQ(row.floats()[1], -1);
  EXPECT_EQ(part.floats()[7], -1);
  EXPECT_EQ(flat.floats()[13], -1);
}

TEST(ArrayTest, PartsAreEntriesOfTheFirstAxis) {
  const Array array = counted();
  EXPECT_EQ(array[2].sizes(), (Sizes{3, 2}));
  EXPECT_EQ(values_of(array[2]), (std::vector<float>{12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(values_of(array[2][1]), (std::vector<float>{14, 15}));
  EXPECT_EQ(array.part(1, 2).sizes(), (Sizes{2, 3, 2}));
  EXPECT_EQ(values_of(array.part(1, 2)[1][0]), (std::vector<float>{12, 13}));
  EXPECT_EQ(array.part(4, 0).count(), 0);
  EXPECT_THROW(array[4], Bug);
  EXPECT_THROW(array[-1], Bug);
  EXPECT_THROW(array.part(3, 2), Bug);
}

TEST(ArrayTest, OtherSizesMustHoldAsManyValues) {
  EXPECT_EQ(values_of(counted().with_sizes({2, 12})[1]), values_of(counted().part(2, 2)));
  EXPECT_THROW(counted().with_sizes({5, 5}), Bug);
}

TEST(ArrayTest, ACloneHasValuesOfItsOwn) {
  const Array array = counted();
  Array row = array[1].clone();
  EXPECT_EQ(row.sizes(), (Sizes{3, 2}));
  EXPECT_EQ(values_of(row), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  row.floats()[0] = -1;
  EXPECT_EQ(array.floats()[6], 6);
}

TEST(ArrayTest, PicksEntriesInAnyOrder) {
  const Array array = counted();
  Array picked = array.pick({3, 0, 3});
  EXPECT_EQ(picked.sizes(), (Sizes{3, 3, 2}));
  EXPECT_EQ(values_of(picked[0]), values_of(array[3]));
  EXPECT_EQ(values_of(picked[1]), values_of(array[0]));
  EXPECT_EQ(values_of(picked[2]), values_of(array[3]));
  picked.floats()[0] = -1;
  EXPECT_EQ(array[3].floats()[0], 18);
  EXPECT_EQ(array.pick({}).sizes(), (Sizes{0, 3, 2}));
  EXPECT_EQ(values_of(array.part(1, 3).pick({1})), values_of(array[2]));
  EXPECT_THROW(array.pick({4}), Bug);
  EXPECT_THROW(array.pick({-1}), Bug);
}

TEST(ArrayTest, ComparesBits) {
  EXPECT_TRUE(same_bits(counted(), counted()));
  EXPECT_TRUE(same_bits(counted()[1], counted()[1].clone()));
  EXPECT_FALSE(same_bits(counted(), counted().with_sizes({24})));
  EXPECT_FALSE(same_bits(counted()[0], counted()[1]));
  EXPECT_FALSE(same_bits(Array({1}), Array({1}, Type::kByte)));
  EXPECT_FALSE(same_bits(Array::of({1}, {0.0f}), Array::of({1}, {-0.0f})));
  EXPECT_TRUE(same_bits(Array::of({1}, {NAN}), Array::of({1}, {NAN})));
  EXPECT_TRUE(same_bits(Array(), Array()));
  EXPECT_FALSE(same_bits(Array(), Array(Sizes{})));
}

TEST(ArrayTest, BytesBecomeTheUnitInterval) {
  Array bytes({1, 4}, Type::kByte);
  for (int64_t i = 0; i < 4; ++i) bytes.bytes()[i] = static_cast<uint8_t>(85 * i);
  const Array floats = to_unit_interval(bytes);
  EXPECT_EQ(floats.sizes(), (Sizes{1, 4}));
  EXPECT_EQ(values_of(floats), (std::vector<float>{0, 85 / 255.0f, 170 / 255.0f, 1}));
}

}  // namespace
}  // namespace fedsmooth
