// The gradients of several models as one.
#include "fedsmooth/engine/ensembles.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

// Logits (a s, s^2) of an image of two pixels, s their sum.
DifferentiableClassifier example(float a) {
  const auto last = std::make_shared<std::vector<float>>();
  const auto logits = [a, last](const Array& x) {
    Array z({x.size(0), 2});
    last->clear();
    for (int64_t i = 0; i < x.size(0); ++i) {
      const float s = x.floats()[2 * i] + x.floats()[2 * i + 1];
      last->push_back(s);
      z.floats()[2 * i] = a * s;
      z.floats()[2 * i + 1] = s * s;
    }
    return z;
  };
  const auto backward = [a, last](const Array& g) {
    Array x({g.size(0), 1, 1, 2});
    for (int64_t i = 0; i < g.size(0); ++i) {
      const float d = a * g.floats()[2 * i] + 2 * (*last)[i] * g.floats()[2 * i + 1];
      x.floats()[2 * i] = x.floats()[2 * i + 1] = d;
    }
    return x;
  };
  return {logits, backward};
}

// In closed form: the mean has a = 2.
TEST(EnsemblesTest, TheMeanHasTheMeanOfLogitsAndGradients) {
  const DifferentiableClassifier mean = mean_with_gradients({example(-1), example(3), example(4)});
  Array x({2, 1, 1, 2}), g({2, 2});
  for (int64_t i = 0; i < 4; ++i) {
    x.floats()[i] = 0.25f * static_cast<float>(i + 1);
    g.floats()[i] = static_cast<float>(i) - 1;
  }
  const Array z = mean.logits(x), d = mean.backward(g);
  const DifferentiableClassifier alone = example(2);
  const Array z_alone = alone.logits(x), d_alone = alone.backward(g);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(z.floats()[i], z_alone.floats()[i]) << i;
    EXPECT_FLOAT_EQ(d.floats()[i], d_alone.floats()[i]) << i;
  }
}

}  // namespace
}  // namespace fedsmooth
