// What every score must hold, for logits of any image.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

/// An image's copies, before they are scored.
struct Copies {
  int count = 0, classes = 0, y = 0;
  std::vector<double> z;  // [count, classes]
  ScoreWeights<double> weights;
  double mix = 0, draw = 0;
  std::vector<double> target = {};
};

/// Logits of standard deviation `scale`, always the same.
inline Copies some_copies(int count, int classes, ScoreWeights<double> weights,
                          double scale = 1.5) {
  Copies copies{count, classes, 1, {}, weights};
  Draws draws(Stream{Key{17}});
  for (int i = 0; i < count * classes; ++i) copies.z.push_back(scale * draws.normal());
  return copies;
}

template <class Real>
struct Scored {
  Terms terms;
  std::vector<Real> gradient;

  double loss() const { return terms.fit + terms.robust + terms.entropy; }
};

template <class Score, class Real = double>
Scored<Real> scored(const Copies& copies) {
  const std::vector<Real> z(copies.z.begin(), copies.z.end());
  std::vector<Real> p(z.size()),
      scratch(ScoredImage<Real>::scratch_size(copies.count, copies.classes));
  Scored<Real> result{{}, std::vector<Real>(z.size())};
  ScoredImage<Real> image;
  image.copies = copies.count;
  image.classes = image.stride = copies.classes;
  image.logits = z.data();
  image.y = copies.y;
  image.weights = {static_cast<Real>(copies.weights.lambda), static_cast<Real>(copies.weights.eta),
                   static_cast<Real>(copies.weights.sigma)};
  image.mix = static_cast<Real>(copies.mix);
  image.draw = static_cast<Real>(copies.draw);
  const std::vector<Real> target(copies.target.begin(), copies.target.end());
  image.target = target.data();
  image.p = p.data();
  image.scratch = scratch.data();
  image.gradient = result.gradient.data();
  Score::add(image);
  result.terms = image.terms;
  return result;
}

/// Central differences of step h are off by h^2 times a third derivative, and by rounding over h.
template <class Score>
void expect_gradient_of_the_loss(const Copies& copies) {
  constexpr double kStep = 1e-5;
  const Scored<double> found = scored<Score>(copies);
  for (size_t i = 0; i < copies.z.size(); ++i) {
    Copies up = copies, down = copies;
    up.z[i] += kStep;
    down.z[i] -= kStep;
    const double slope = (scored<Score>(up).loss() - scored<Score>(down).loss()) / (2 * kStep);
    EXPECT_NEAR(found.gradient[i], slope, 1e-7 * (1 + std::abs(slope))) << i;
  }
}

/// The copies `first` .. `first + count` the other way round: the same loss, the gradients too.
template <class Score>
void expect_order_is_free(const Copies& copies, int first, int count) {
  Copies turned = copies;
  const auto row = [&](int i) { return 2 * first + count - 1 - i; };
  for (int i = first; i < first + count; ++i) {
    std::copy_n(copies.z.begin() + i * copies.classes, copies.classes,
                turned.z.begin() + row(i) * copies.classes);
  }
  const Scored<double> a = scored<Score>(copies), b = scored<Score>(turned);
  EXPECT_NEAR(a.loss(), b.loss(), 1e-12 * (1 + std::abs(a.loss())));
  for (int i = first; i < first + count; ++i) {
    for (int k = 0; k < copies.classes; ++k) {
      EXPECT_NEAR(a.gradient[i * copies.classes + k], b.gradient[row(i) * copies.classes + k],
                  1e-12);
    }
  }
}

/// In double and in float, for logits of +-80 in every pattern that matters.
template <class Score>
void expect_finite_at_the_extremes(Copies copies) {
  for (int pattern = 0; pattern < 4; ++pattern) {
    for (int i = 0; i < copies.count; ++i) {
      for (int k = 0; k < copies.classes; ++k) {
        const bool high = pattern == 0   ? k == copies.y
                          : pattern == 1 ? k != copies.y
                          : pattern == 2 ? k == i % copies.classes
                                         : (i + k) % 2 == 0;
        copies.z[i * copies.classes + k] = high ? 80 : -80;
      }
    }
    const auto in_double = scored<Score>(copies);
    const auto in_float = scored<Score, float>(copies);
    EXPECT_TRUE(std::isfinite(in_double.loss())) << pattern;
    EXPECT_TRUE(std::isfinite(in_float.loss())) << pattern;
    for (const double g : in_double.gradient) EXPECT_TRUE(std::isfinite(g)) << pattern;
    for (const float g : in_float.gradient) EXPECT_TRUE(std::isfinite(g)) << pattern;
  }
}

/// The GPU's arithmetic: the same up to some roundings of float.
template <class Score>
void expect_float_is_near(const Copies& copies, double tolerance = 1e-5) {
  const auto in_double = scored<Score>(copies);
  const auto in_float = scored<Score, float>(copies);
  EXPECT_NEAR(in_float.loss(), in_double.loss(), tolerance * (1 + std::abs(in_double.loss())));
  for (size_t i = 0; i < copies.z.size(); ++i) {
    EXPECT_NEAR(in_float.gradient[i], in_double.gradient[i], tolerance) << i;
  }
}

}  // namespace fedsmooth
