// Consistency regularisation (Jeong and Shin, NeurIPS 2020):
//
//     mean_i -log p_i,y + lambda mean_i KL(s || p_i) + eta H(s).
//
// With a = log s - mean_i log p_i, which makes mean_i KL(s || p_i) = <s, a>, the gradients of the
// last two terms with respect to z_i, times m, are
//
//     p_i (a - <p_i, a>) + p_i - s    and    -p_i (log s - <p_i, log s>).
#pragma once

#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

struct Consistency {
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add(ScoredImage<Real>& image) {
    const Real lambda = image.weights.lambda, eta = image.weights.eta;
    const int classes = image.classes, stride = image.stride;
    const auto copies = static_cast<Real>(image.copies);
    Real *a = image.scratch, *log_s = image.scratch + stride;
    add_means(image, a, log_s);
    for (int k = 0; k < classes; ++k) {
      const Real s = std::exp(log_s[k]);
      image.terms.robust += lambda * copies * s * a[k];
      image.terms.entropy -= eta * copies * s * log_s[k];
    }
    for (int i = 0; i < image.copies; ++i) {
      const Real* p = image.p + i * stride;
      Real mean_a = 0, mean_log_s = 0;
      for (int k = 0; k < classes; ++k) {
        mean_a += p[k] * a[k];
        mean_log_s += p[k] * log_s[k];
      }
      for (int k = 0; k < classes; ++k) {
        const Real apart = p[k] * (a[k] - mean_a) + p[k] - std::exp(log_s[k]);
        const Real uncertain = p[k] * (log_s[k] - mean_log_s);
        image.gradient[i * stride + k] =
            p[k] - Real(k == image.y) + lambda * apart - eta * uncertain;
      }
    }
  }

 private:
  // p, the first term, log s and a. Logarithms of sums of exponentials: where every p_i,k is too
  // small for a number, log s_k still is one.
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add_means(ScoredImage<Real>& image, Real* a, Real* log_s) {
    const auto copies = static_cast<Real>(image.copies);
    for (int k = 0; k < image.classes; ++k) a[k] = 0;
    for (int i = 0; i < image.copies; ++i) {
      const int row = i * image.stride;
      const auto log_p = softmax(image.logits + row, image.classes, image.p + row);
      image.terms.fit -= log_p[image.y];
      for (int k = 0; k < image.classes; ++k) {
        const Real value = log_p[k];
        a[k] += value / copies;
        log_s[k] = i == 0 ? value : add_logs(log_s[k], value);
      }
    }
    for (int k = 0; k < image.classes; ++k) {
      log_s[k] -= std::log(copies);
      a[k] = log_s[k] - a[k];
    }
  }

  // log(exp(x) + exp(y)).
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static Real add_logs(Real x, Real y) {
    const Real more = x > y ? x : y, less = x > y ? y : x;
    return more + std::log1p(std::exp(less - more));
  }
};

}  // namespace fedsmooth
