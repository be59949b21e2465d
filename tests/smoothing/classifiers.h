// Classifiers whose smoothed versions are known in closed form.
#pragma once

#include <ATen/ATen.h>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

inline BaseClassifier fixed_batch(const Classifier& f, int64_t classes, int64_t batch = 64) {
  return {[f] { return f; }, classes, batch, "test"};
}

// Answers 1 on the half-space {z : w.z > w.origin}, else 0; w is the unit vector along the
// diagonal. The largest radius that can be certified at x is the distance |w.(x - origin)|,
// whatever sigma.
inline Classifier half_space(int64_t size, const Tensor& origin) {
  const Tensor w = at::full({size}, 1 / std::sqrt(static_cast<double>(size)));
  const Tensor offset = w.dot(origin.flatten());
  return [w, offset](const Tensor& images) {
    const Tensor score = images.flatten(1).mv(w) - offset;
    return at::stack({-score, score}, 1);
  };
}

// The same after a normalisation layer (z - 0.4) / 0.2, which must change no radius.
inline Classifier normalized_half_space(int64_t size, const Tensor& origin) {
  const Classifier f = half_space(size, (origin - 0.4) / 0.2);
  return [f](const Tensor& images) { return f((images - 0.4) / 0.2); };
}

// Always the same class.
inline Classifier constant_class(int64_t answer, int64_t classes) {
  return [=](const Tensor& images) {
    Tensor logits = at::zeros({images.size(0), classes});
    logits.select(1, answer).fill_(1);
    return logits;
  };
}

// No answer at all.
inline Classifier not_a_number(int64_t classes) {
  return [=](const Tensor& images) { return at::full({images.size(0), classes}, NAN); };
}

}  // namespace fedsmooth
