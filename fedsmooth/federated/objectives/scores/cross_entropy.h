// mean_i -log p_i,y: the loss of the paper, and of its ablations.
#pragma once

#include "fedsmooth/federated/objectives/scores/score.h"

namespace fedsmooth {

struct CrossEntropy {
  template <class Real>
  FEDSMOOTH_HOST_DEVICE static void add(ScoredImage<Real>& image) {
    for (int i = 0; i < image.copies; ++i) {
      const int row = i * image.stride;
      const auto log_p = softmax(image.logits + row, image.classes, image.p + row);
      image.terms.fit -= log_p[image.y];
      for (int k = 0; k < image.classes; ++k) {
        image.gradient[row + k] = image.p[row + k] - Real(k == image.y);
      }
    }
  }
};

}  // namespace fedsmooth
