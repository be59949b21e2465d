#include "fedsmooth/engine/cpu/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/reference/layers.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// Small and large values of both signs; 1000 underflows every exponential.
std::vector<float> inputs() {
  std::vector<float> found = {0.0f, -0.0f, 1e-30f, -1e-30f, 1000, -1000, 3e38f, -3e38f};
  for (int i = -20'000; i <= 20'000; ++i) found.push_back(static_cast<float>(i) / 1000);
  return found;
}

class ActivationsTest : public testing::TestWithParam<Kind> {
 protected:
  const Layer layer_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(All, ActivationsTest,
                         testing::Values(Kind::kLeakyRelu, Kind::kSilu, Kind::kGelu),
                         [](const auto& info) {
                           return info.param == Kind::kSilu   ? "silu"
                                  : info.param == Kind::kGelu ? "gelu"
                                                              : "leaky_relu";
                         });

TEST_P(ActivationsTest, AreTheReferencesInDouble) {
  const std::vector<float> x = inputs();
  reference::Map<double> exact(1, {std::ssize(x), 1, 1}), ones = exact;
  exact.values.assign(x.begin(), x.end());
  ones.values.assign(x.size(), 1);
  const auto y = reference::activate(layer_, exact);
  const auto slopes = reference::activate_back(layer_, exact, ones);
  std::vector<float> found = x, gradient(x.size(), 1.0f);
  activate(layer_, std::ssize(found), found.data());
  activation_gradient(layer_, x.data(), std::ssize(x), gradient.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double size = std::max(1.0, std::abs(y.values[i]));
    EXPECT_NEAR(found[i], y.values[i], 4e-7 * size) << x[i];
    EXPECT_NEAR(gradient[i], slopes.values[i], 1e-6) << x[i];
  }
}

TEST_P(ActivationsTest, DoNotDependOnThePlace) {
  const std::vector<float> x = inputs();
  std::vector<float> all = x;
  activate(layer_, std::ssize(all), all.data());
  for (size_t i = 0; i < x.size(); i += 97) {
    float one = x[i];
    activate(layer_, 1, &one);
    EXPECT_EQ(one, all[i]) << x[i];
  }
}

TEST_P(ActivationsTest, KeepNaN) {
  std::vector<float> x(20, NAN), dy(20, 1.0f);
  activate(layer_, 20, x.data());
  for (const float value : x) EXPECT_TRUE(std::isnan(value));
}

TEST(ActivationsOfNoneTest, ReluIsFusedElsewhere) {
  float x = 1;
  EXPECT_THROW(activate({Kind::kRelu}, 1, &x), Bug);
  EXPECT_THROW(activation_gradient({Kind::kRelu}, &x, 1, &x), Bug);
}

}  // namespace
}  // namespace fedsmooth
