// Stability training (Li et al., NeurIPS 2019): the clean image is answered right, and its noisy
// copies as it is. With copy 0 the image itself and p = p_0,
//
//     -log p_y + lambda mean_i CE(p_i, p),    CE(p_i, p) = -<p, log p_i>,  i = 1, ..., m.
//
// Nothing is held fixed: with c = -mean_i log p_i the gradient with respect to z_0 has
// lambda p (c - <p, c>) beside that of the first term; with respect to z_i it is lambda / m (p_i -
// p).
#pragma once

#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

struct Stability {
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add(ScoredImage<Real>& image) {
    const int classes = image.classes;
    // The loss is of the image, and a score writes it `copies` times.
    const auto copies = static_cast<Real>(image.copies), m = static_cast<Real>(image.copies - 1);
    const Real lambda = image.weights.lambda * copies;
    const Real* p = image.p;
    Real* c = image.scratch;
    const auto log_p = softmax(image.logits, classes, image.p);
    image.terms.fit -= copies * log_p[image.y];
    for (int k = 0; k < classes; ++k) c[k] = 0;
    for (int i = 1; i < image.copies; ++i) {
      const int row = i * image.stride;
      const auto log_p_i = softmax(image.logits + row, classes, image.p + row);
      for (int k = 0; k < classes; ++k) {
        c[k] -= log_p_i[k] / m;
        image.gradient[row + k] = lambda / m * (image.p[row + k] - p[k]);
      }
    }
    Real mean_c = 0;
    for (int k = 0; k < classes; ++k) mean_c += p[k] * c[k];
    image.terms.robust += lambda * mean_c;
    for (int k = 0; k < classes; ++k) {
      image.gradient[k] = copies * (p[k] - Real(k == image.y)) + lambda * p[k] * (c[k] - mean_c);
    }
  }
};

}  // namespace fedsmooth
