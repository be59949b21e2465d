#include "fedsmooth/engine/cpu/activations.h"

#include <bit>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/toeplitz_lanes.h"

namespace fedsmooth {
namespace {

// exp(x) for x <= 0, and 0 below -87. exp(x) = 2^n exp(r) with |r| <= log(2) / 2, where Taylor's
// polynomial of degree 7 is off by 5e-9. Adding 1.5 * 2^23 rounds to a whole number n, which the
// last bits of the sum then hold.
FEDSMOOTH_INLINE float exponential(float x) {
  constexpr float kRounding = 12582912.0f, kHigh = 0.693359375f, kLow = -2.12194440e-4f;
  const bool vanishes = x < -87.0f;
  x = vanishes ? -87.0f : x;
  const float sum = x * 1.44269504f + kRounding, n = sum - kRounding;
  const float r = (x - n * kHigh) - n * kLow;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const float value = p * std::bit_cast<float>((std::bit_cast<uint32_t>(sum) + 127u) << 23);
  return vanishes ? 0.0f : value;
}

FEDSMOOTH_INLINE float absolute(float x) { return x < 0 ? -x : x; }

// Phi(x) by Abramowitz and Stegun 7.1.26, whose erf is within 1.5e-7. `gauss` is exp(-x^2 / 2).
FEDSMOOTH_INLINE float normal_cdf(float x, float gauss) {
  const float t = 1.0f / (1.0f + 0.3275911f * 0.707106781f * absolute(x));
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * (p * t) * gauss;
  return x < 0 ? tail : 1.0f - tail;
}

FEDSMOOTH_VECTOR_CLONES
void leaky_relu(float slope, int64_t size, float* y) {
  for (int64_t i = 0; i < size; ++i) y[i] = y[i] < 0.0f ? slope * y[i] : y[i];
}

FEDSMOOTH_VECTOR_CLONES
void silu(int64_t size, float* y) {
  for (int64_t i = 0; i < size; ++i) {
    const float e = exponential(-absolute(y[i]));
    y[i] = y[i] * ((y[i] < 0 ? e : 1.0f) / (1.0f + e));
  }
}

FEDSMOOTH_VECTOR_CLONES
void gelu(int64_t size, float* y) {
  for (int64_t i = 0; i < size; ++i) {
    y[i] *= normal_cdf(y[i], exponential(-0.5f * (y[i] * y[i])));
  }
}

FEDSMOOTH_VECTOR_CLONES
void leaky_relu_gradient(float slope, const float* __restrict x, int64_t size,
                         float* __restrict dy) {
  for (int64_t i = 0; i < size; ++i) dy[i] *= x[i] > 0.0f ? 1.0f : slope;
}

FEDSMOOTH_VECTOR_CLONES
void silu_gradient(const float* __restrict x, int64_t size, float* __restrict dy) {
  for (int64_t i = 0; i < size; ++i) {
    const float e = exponential(-absolute(x[i]));
    const float sigmoid = (x[i] < 0 ? e : 1.0f) / (1.0f + e);
    const float rest = (x[i] < 0 ? 1.0f : e) / (1.0f + e);  // 1 - sigmoid
    dy[i] *= sigmoid + sigmoid * rest * x[i];
  }
}

FEDSMOOTH_VECTOR_CLONES
void gelu_gradient(const float* __restrict x, int64_t size, float* __restrict dy) {
  constexpr float kDensity = 0.398942280f;  // 1 / sqrt(2 pi)
  for (int64_t i = 0; i < size; ++i) {
    const float gauss = exponential(-0.5f * (x[i] * x[i]));
    dy[i] *= normal_cdf(x[i], gauss) + x[i] * (kDensity * gauss);
  }
}

}  // namespace

void activate(const Layer& activation, int64_t size, float* y) {
  switch (activation.kind) {
    case Layer::Kind::kLeakyRelu:
      return leaky_relu(static_cast<float>(activation.slope), size, y);
    case Layer::Kind::kSilu:
      return silu(size, y);
    case Layer::Kind::kGelu:
      return gelu(size, y);
    default:
      throw Bug("activate: not an activation other than ReLU");
  }
}

void activation_gradient(const Layer& activation, const float* x, int64_t size, float* dy) {
  switch (activation.kind) {
    case Layer::Kind::kLeakyRelu:
      return leaky_relu_gradient(static_cast<float>(activation.slope), x, size, dy);
    case Layer::Kind::kSilu:
      return silu_gradient(x, size, dy);
    case Layer::Kind::kGelu:
      return gelu_gradient(x, size, dy);
    default:
      throw Bug("activation_gradient: not an activation other than ReLU");
  }
}

}  // namespace fedsmooth
