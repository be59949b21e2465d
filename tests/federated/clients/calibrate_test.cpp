#include "fedsmooth/federated/clients/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

// `each` images of every class in `classes`.
std::vector<int64_t> images_of(int64_t each, const std::vector<int64_t>& classes) {
  std::vector<int64_t> images;
  for (const int64_t c : classes) {
    int64_t found = 0;
    for (int64_t i = 0; i < shapes().size() && found < each; ++i) {
      if (shapes().label(i) != c) continue;
      images.push_back(i);
      ++found;
    }
  }
  return images;
}

const std::vector<int64_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

Update train_client(const std::vector<int64_t>& images, bool calibrate) {
  LocalTask task = small_task(Method::kSmoothAdv);
  task.local.calibrate = calibrate;
  const auto passes = reference_passes(task.network);
  return local_train(task, *passes, start().global, 3, images, 0);
}

TEST(CalibrateTest, SharesAreThoseOfTheClientsImages) {
  const std::vector<float> shares = log_class_shares(shapes(), images_of(3, {2, 5}));
  ASSERT_EQ(shares.size(), 10U);
  for (int64_t c = 0; c < 10; ++c) {
    const double expected = c == 2 || c == 5 ? std::log(0.5) : std::log(1e-7 / 6);
    EXPECT_NEAR(shares[c], expected, 1e-5) << c;
  }
}

TEST(CalibrateTest, LogitsAreShiftedAndGradientsAreNot) {
  const auto passes = reference_passes(small_network());
  passes->load(start().global);
  std::vector<float> offsets(10);
  for (int c = 0; c < 10; ++c) offsets[c] = static_cast<float>(c);
  const auto shifted = calibrated(*passes, offsets);
  const Array x = to_unit_interval(shapes().images.pick({1, 2}));
  const Array plain = passes->forward(x, std::nullopt), found = shifted->forward(x, std::nullopt);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(found.floats()[i], plain.floats()[i] + static_cast<float>(i % 10));
  }
  const Array g = Array::full({2, 10}, 0.1f);
  EXPECT_TRUE(same_bits(shifted->backward_to_images(g), passes->backward_to_images(g)));
}

// The same constant on every logit is none.
TEST(CalibrateTest, ABalancedClientTrainsAsBefore) {
  const auto images = images_of(4, kAll);
  const Weights plain = train_client(images, false).weights;
  const Weights found = train_client(images, true).weights;
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_LT(difference(plain[i], found[i]), 1e-4) << i;
}

// A client that holds two classes alone learns to answer nothing else, unless it is calibrated.
TEST(CalibrateTest, ASkewedClientForgetsLess) {
  const auto images = images_of(20, {2, 5});
  const auto mean_of_others = [](const Weights& weights) {
    const Array& bias = weights.back();
    double sum = 0;
    for (int64_t c = 0; c < 10; ++c) sum += c == 2 || c == 5 ? 0 : bias.floats()[c];
    return sum / 8;
  };
  const double before = mean_of_others(start().global);
  const double plain = mean_of_others(train_client(images, false).weights);
  const double found = mean_of_others(train_client(images, true).weights);
  EXPECT_LT(plain, before - 1e-3);
  EXPECT_NEAR(found, before, 1e-4);
}

}  // namespace
}  // namespace fedsmooth
