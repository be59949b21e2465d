// SmoothMix (Jeong et al., NeurIPS 2021): between an image and its adversarial example the answers
// should lose their certainty. The first m copies are of x, the next m of x~ = (1 - mix) x + mix
// x_adv; with q_i the softmax of the latter and t = (1 - mix) s + mix / K,
//
//     mean_i -log p_i,y + lambda [argmax s = y] mean_i KL(t || q_i).
//
// Nothing is held fixed: with c = log t - mean_i log q_i the gradient with respect to z_i has
// (1 - mix) lambda / m p_i (c - <p_i, c>) beside that of the first term; of z~_i it is
// lambda / m (q_i - t).
#pragma once

#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

struct SmoothMix {
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add(ScoredImage<Real>& image) {
    const int m = image.copies / 2, classes = image.classes, stride = image.stride;
    Real *t = image.scratch, *c = image.scratch + stride;
    const bool right = add_fit(image, t);
    const Real lambda = right ? 2 * image.weights.lambda : Real(0);  // times 2 m copies, over m
    const Real even = image.mix / Real(classes);
    for (int k = 0; k < classes; ++k) {
      t[k] = (1 - image.mix) * t[k] + even;
      c[k] = t[k] > 0 ? std::log(t[k]) : Real(0);  // t log t is 0 at 0
    }
    for (int i = m; i < 2 * m; ++i) {
      const int row = i * stride;
      const auto log_q = softmax(image.logits + row, classes, image.p + row);
      for (int k = 0; k < classes; ++k) {
        c[k] -= log_q[k] / Real(m);
        image.gradient[row + k] = lambda * (image.p[row + k] - t[k]);
      }
    }
    for (int k = 0; k < classes; ++k) image.terms.robust += lambda * Real(m) * t[k] * c[k];
    for (int i = 0; i < m; ++i) {
      const Real* p = image.p + i * stride;
      Real mean_c = 0;
      for (int k = 0; k < classes; ++k) mean_c += p[k] * c[k];
      for (int k = 0; k < classes; ++k) {
        image.gradient[i * stride + k] += lambda * (1 - image.mix) * p[k] * (c[k] - mean_c);
      }
    }
  }

 private:
  // The first term, and s. Returns whether its largest entry is y's.
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static bool add_fit(ScoredImage<Real>& image, Real* s) {
    const int m = image.copies / 2;
    for (int k = 0; k < image.classes; ++k) s[k] = 0;
    for (int i = 0; i < m; ++i) {
      const int row = i * image.stride;
      const auto log_p = softmax(image.logits + row, image.classes, image.p + row);
      image.terms.fit -= 2 * log_p[image.y];
      for (int k = 0; k < image.classes; ++k) {
        s[k] += image.p[row + k] / Real(m);
        image.gradient[row + k] = 2 * (image.p[row + k] - Real(k == image.y));
      }
    }
    for (int k = 0; k < image.classes; ++k) {
      if (k != image.y && s[k] >= s[image.y]) return false;
    }
    return true;
  }
};

}  // namespace fedsmooth
