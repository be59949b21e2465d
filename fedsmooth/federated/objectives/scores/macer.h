// MACER (Zhai et al., ICLR 2020): the smoothed classifier's own loss, and its certified radius
// where it is right but not yet far. With P = mean_i softmax(16 z_i), p1 = P_y and p2 the largest
// other,
//
//     -log(s_y + 1e-10) + lambda sigma / 2 h,    h = 8 + Phi^-1(p2) - Phi^-1(p1)
//
// where p1 > p2 and h is between 0 and 16; elsewhere, and where a quantile is not finite, h = 0.
#pragma once

#include "fedsmooth/federated/objectives/scores/score.h"

#ifndef __CUDACC__
#include <boost/math/special_functions/erf.hpp>
#endif

namespace fedsmooth {

struct Macer {
  static constexpr int kSharpness = 16, kMargin = 8;

  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add(ScoredImage<Real>& image) {
    add_fit(image);
    // The rows of `gradient` hold softmax(16 z_i) until each is written.
    const Radius<Real> radius = find_radius(image);
    const Real weight = image.weights.lambda * image.weights.sigma / 2;
    if (radius.counts) image.terms.robust += weight * Real(image.copies) * radius.h;
    const Real s_y = smoothed_y(image);
    for (int i = 0; i < image.copies; ++i) {
      const Real* p = image.p + i * image.stride;
      Real* sharp = image.gradient + i * image.stride;
      const Real of_y = sharp[image.y], of_other = sharp[radius.other];
      const Real fit = p[image.y] / (s_y + Real(1e-10));
      for (int k = 0; k < image.classes; ++k) {
        const Real is_y(k == image.y), is_other(k == radius.other), q = sharp[k];
        sharp[k] = fit * (p[k] - is_y);
        if (!radius.counts) continue;
        sharp[k] += weight * kSharpness *
                    (radius.by_p2 * of_other * (is_other - q) + radius.by_p1 * of_y * (is_y - q));
      }
    }
  }

 private:
  // h, and its derivatives with respect to p1 and p2.
  template <class Real>
  struct Radius {
    bool counts = false;
    int other = 0;
    Real h = 0, by_p1 = 0, by_p2 = 0;
  };

  template <class Real>
  FEDSMOOTH_HOST_DEVICE static Real smoothed_y(const ScoredImage<Real>& image) {
    Real sum = 0;
    for (int i = 0; i < image.copies; ++i) sum += image.p[i * image.stride + image.y];
    return sum / Real(image.copies);
  }

  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add_fit(ScoredImage<Real>& image) {
    for (int i = 0; i < image.copies; ++i) {
      const int row = i * image.stride;
      softmax(image.logits + row, image.classes, image.p + row);
      sharpen(image.logits + row, image.classes, image.gradient + row);
    }
    image.terms.fit -= Real(image.copies) * std::log(smoothed_y(image) + Real(1e-10));
  }

  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void sharpen(const Real* z, int classes, Real* p) {
    for (int k = 0; k < classes; ++k) p[k] = kSharpness * z[k];
    softmax(p, classes, p);
  }

  template <class Real>
  FEDSMOOTH_HOST_DEVICE static Radius<Real> find_radius(const ScoredImage<Real>& image) {
    Radius<Real> radius;
    Real* mean = image.scratch;
    Real others = 0, p2 = -1;  // 1 - p1 as a sum: near 1 there are too few digits for it
    for (int k = 0; k < image.classes; ++k) {
      mean[k] = 0;
      for (int i = 0; i < image.copies; ++i) mean[k] += image.gradient[i * image.stride + k];
      mean[k] /= Real(image.copies);
      if (k == image.y) continue;
      others += mean[k];
      if (mean[k] > p2) {
        p2 = mean[k];
        radius.other = k;
      }
    }
    const Real q1 = -normal_quantile(others), q2 = normal_quantile(p2);
    radius.h = kMargin + q2 - q1;
    // False if one is not a number.
    radius.counts = mean[image.y] > p2 && radius.h >= 0 && radius.h <= 2 * kMargin;
    radius.by_p1 = -1 / normal_density(q1);
    radius.by_p2 = 1 / normal_density(q2);
    return radius;
  }

  template <class Real>
  FEDSMOOTH_HOST_DEVICE static Real normal_density(Real x) {
    return Real(0.3989422804014327) * std::exp(-x * x / 2);
  }

  // Phi^-1(p); infinite where p is not inside (0, 1).
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static Real normal_quantile(Real p) {
    if (!(p > 0 && p < 1)) return p > 0 ? Real(INFINITY) : -Real(INFINITY);
#ifdef __CUDACC__
    return normcdfinv(p);
#else
    return Real(-1.4142135623730951) * boost::math::erfc_inv(2 * p);
#endif
  }
};

}  // namespace fedsmooth
