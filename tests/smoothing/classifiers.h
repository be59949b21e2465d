// Classifiers whose smoothed versions are known in closed form.
#pragma once

#include <cmath>
#include <functional>
#include <span>

#include "fedsmooth/smoothing/sampler.h"
#include "tests/arrays.h"

namespace fedsmooth {

inline BaseClassifier fixed_batch(const Classifier& f, int64_t classes, int64_t batch = 64) {
  return {[f] { return f; }, classes, batch, "test"};
}

using Pixels = std::span<const float>;

inline Pixels pixels_of(const Array& images, int64_t image) {
  const int64_t size = images.count() / images.size(0);
  return {images.floats() + image * size, static_cast<size_t>(size)};
}

// Logits that `write` makes of each image alone.
inline Classifier image_by_image(int64_t classes,
                                 const std::function<void(Pixels pixels, float* logits)>& write) {
  return [=](const Array& images) {
    Array logits({images.size(0), classes});
    for (int64_t i = 0; i < images.size(0); ++i) {
      write(pixels_of(images, i), logits.floats() + i * classes);
    }
    return logits;
  };
}

// Answers 1 where an image has a positive score, else 0.
inline Classifier by_score(const std::function<float(Pixels)>& score) {
  return image_by_image(2, [=](Pixels pixels, float* logits) {
    logits[1] = score(pixels);
    logits[0] = -logits[1];
  });
}

// Answers 1 on the half-space {z : w.z > w.origin}, else 0; w is the unit vector along the
// diagonal. The largest radius that can be certified at x is the distance |w.(x - origin)|,
// whatever sigma.
inline Classifier half_space(int64_t size, const Array& origin) {
  const auto w = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  const auto dot = [w](Pixels pixels) {
    float sum = 0;
    for (const float pixel : pixels) sum += w * pixel;
    return sum;
  };
  const float offset = dot({origin.floats(), static_cast<size_t>(origin.count())});
  return by_score([=](Pixels pixels) { return dot(pixels) - offset; });
}

// The same after a normalisation layer (z - 0.4) / 0.2, which must change no radius.
inline Classifier normalized_half_space(int64_t size, const Array& origin) {
  const auto normalize = [](const Array& z) {
    return each(z, [](float v) { return (v - 0.4f) / 0.2f; });
  };
  const Classifier f = half_space(size, normalize(origin));
  return [=](const Array& images) { return f(normalize(images)); };
}

// Always the same class.
inline Classifier constant_class(int64_t answer, int64_t classes) {
  return image_by_image(classes, [=](Pixels, float* logits) { logits[answer] = 1; });
}

// No answer at all.
inline Classifier not_a_number(int64_t classes) {
  return [=](const Array& images) { return Array::full({images.size(0), classes}, NAN); };
}

}  // namespace fedsmooth
