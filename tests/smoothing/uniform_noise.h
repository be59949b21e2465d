// A noise law that the library does not have: uniform on [-sigma, sigma]^d, whose radii are in l1
// (Yang et al. 2020): 2 sigma (p - 1/2), and sigma (p - q) against a class of probability q.
#pragma once

#include <algorithm>

#include "fedsmooth/smoothing/noise.h"
#include "fedsmooth/smoothing/noise_law.h"

namespace fedsmooth {

inline NoiseSource uniform_noise_at(double sigma) {
  return [sigma](const Array& x, Stream stream, int64_t first, int64_t count, Array& noisy) {
    check_copies(x, first, count, noisy);
    const auto scale = static_cast<float>(sigma);
    for (int64_t i = 0; i < count; ++i) {
      float* out = noisy.floats() + i * x.count();
      fill_uniform(stream, static_cast<uint32_t>(first + i), out, x.count());
      for (int64_t j = 0; j < x.count(); ++j) {
        out[j] = x.floats()[j] + scale * (2 * out[j] - 1);
      }
    }
  };
}

inline const NoiseLaw kUniformNoise = {
    "uniform",
    Norm::kL1,
    /*max_sigma=*/4,
    uniform_noise_at,
    [](double sigma, double p) { return 2 * sigma * std::max(0.0, p - 0.5); },
    [](double sigma, double p, double q) { return sigma * std::max(0.0, p - q); },
    [](double sigma, double radius) { return 0.5 + radius / (2 * sigma); },
};

}  // namespace fedsmooth
