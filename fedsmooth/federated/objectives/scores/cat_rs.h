// CAT-RS (Jeong et al., AAAI 2023): as many of the m copies are trained on as a classifier of this
// confidence would answer right, and the worst of moved copies where that is all of them. The first
// m copies are of noises delta_i, the next m of the noises moved; with l_i = -log p_i,y, a share r
// of the first half answered right, K = max(1, Binomial(m, r)) and q the teacher's votes,
//
//     1/m (the K smallest l_i) + lambda [K = m] max_i KL(q || p'_i).
#pragma once

#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

struct CatRs {
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add(ScoredImage<Real>& image) {
    const int m = image.copies / 2;
    Real* losses = image.scratch;  // [m]
    const int kept = draw_kept(image, losses);
    for (int i = 0; i < m; ++i) {
      const bool keep = rank_of(losses, i, m) < kept;
      if (keep) image.terms.fit += 2 * losses[i];
      for (int k = 0; k < image.classes; ++k) {
        const int at = i * image.stride + k;
        image.gradient[at] = keep ? 2 * (image.p[at] - Real(k == image.y)) : Real(0);
      }
    }
    add_worst(image, kept == m ? 2 * Real(m) * image.weights.lambda : Real(0));
  }

 private:
  // p and l of the first half; returns K.
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static int draw_kept(ScoredImage<Real>& image, Real* losses) {
    const int m = image.copies / 2;
    int right = 0;
    for (int i = 0; i < m; ++i) {
      const int row = i * image.stride;
      const auto log_p = softmax(image.logits + row, image.classes, image.p + row);
      losses[i] = -log_p[image.y];
      bool largest = true;
      for (int k = 0; k < image.classes; ++k) {
        largest = largest && (k == image.y || image.logits[row + k] < image.logits[row + image.y]);
      }
      right += largest;
    }
    const int kept = binomial(image.draw, m, Real(right) / Real(m));
    return kept > 1 ? kept : 1;
  }

  // The smallest k whose distribution function is above u.
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static int binomial(Real u, int m, Real share) {
    if (share >= 1) return m;
    Real mass = std::pow(1 - share, Real(m)), below = mass;
    int k = 0;
    for (; k < m && u >= below; ++k) {
      mass *= Real(m - k) / Real(k + 1) * share / (1 - share);
      below += mass;
    }
    return k;
  }

  template <class Real>
  FEDSMOOTH_HOST_DEVICE static int rank_of(const Real* losses, int i, int m) {
    int rank = 0;
    for (int j = 0; j < m; ++j) rank += losses[j] < losses[i] || (losses[j] == losses[i] && j < i);
    return rank;
  }

  // KL(q || p') of the moved copy that is furthest from q.
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add_worst(ScoredImage<Real>& image, Real weight) {
    const int m = image.copies / 2;
    const Real* q = image.target;
    Real worst = -1;
    int worst_row = m * image.stride;
    for (int i = m; i < 2 * m; ++i) {
      const int row = i * image.stride;
      const auto log_p = softmax(image.logits + row, image.classes, image.p + row);
      Real divergence = 0;
      for (int k = 0; k < image.classes; ++k) {
        image.gradient[row + k] = 0;
        if (q[k] > 0) divergence += q[k] * (std::log(q[k]) - log_p[k]);
      }
      if (divergence > worst) {
        worst = divergence;
        worst_row = row;
      }
    }
    image.terms.robust += weight * worst;
    for (int k = 0; k < image.classes; ++k) {
      image.gradient[worst_row + k] = weight * (image.p[worst_row + k] - q[k]);
    }
  }
};

}  // namespace fedsmooth
