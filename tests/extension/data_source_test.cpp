// A data source of one's own, in one file: what a program that links the library writes.
#include <gtest/gtest.h>

#include "fedsmooth/fedsmooth.h"

namespace fedsmooth {
namespace {

// Class 0 is brighter to the right, class 1 to the left.
Dataset make_ramps(const std::filesystem::path& /*root*/, Split split) {
  const int64_t count = split == Split::kTrain ? 40 : 10, side = 16;
  Dataset data{Array({count, 1, side, side}, Array::Type::kByte), {}, {"right", "left"}};
  for (int64_t i = 0; i < data.images.count(); ++i) {
    const int64_t image = i / (side * side), column = i % side;
    data.images.bytes()[i] =
        static_cast<uint8_t>(16 * (image % 2 == 0 ? column : side - 1 - column));
  }
  for (int64_t i = 0; i < count; ++i) data.labels.push_back(i % 2);
  return data;
}

TEST(DataSourceExtensionTest, ARowIsAllThatItTakes) {
  EXPECT_THROW(load_dataset({.name = "ramps"}, Split::kTest), Error);
  ASSERT_TRUE(add_data_source({"ramps", make_ramps}));
  EXPECT_EQ(load_dataset({.name = "ramps"}, Split::kTest).size(), 10);
  EXPECT_EQ(load_dataset({.name = "ramps", .held_out = 8}, Split::kTest).size(), 8);

  const Experiment experiment = parse_experiment("data.name = 'ramps'\n", "e.toml");
  EXPECT_EQ(experiment.data.name, "ramps");
  EXPECT_THROW(add_data_source({"ramps", make_ramps}), Error);
  EXPECT_THROW(add_data_source({"cifar10", make_ramps}), Error);
}

}  // namespace
}  // namespace fedsmooth
