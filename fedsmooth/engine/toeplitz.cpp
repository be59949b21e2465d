#include "fedsmooth/engine/toeplitz.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "fedsmooth/base/vector_clones.h"

namespace fedsmooth {
namespace {

// The scheme for n = 2, as in the header.
const std::vector<std::vector<int64_t>> kInputs = {{0, 1}, {1}, {0}};
const std::vector<std::vector<int64_t>> kOutputs = {{0, 1}, {0, 2}};
const std::vector<std::vector<int>> kKernel = {{0, 1, 0}, {0, -1, 1}, {1, -1, 0}};

// out[c] = sum over `terms` of x[term * stride + c] (+ bias[c], then ReLU).
FEDSMOOTH_VECTOR_CLONES
void add_up(const float* x, const int64_t* terms, int64_t count, int64_t stride, int64_t channels,
            const float* bias, bool relu, float* out) {
  const float* first = x + terms[0] * stride;
  if (bias != nullptr) {
    for (int64_t c = 0; c < channels; ++c) out[c] = first[c] + bias[c];
  } else {
    for (int64_t c = 0; c < channels; ++c) out[c] = first[c];
  }
  for (int64_t t = 1; t < count; ++t) {
    const float* next = x + terms[t] * stride;
    for (int64_t c = 0; c < channels; ++c) out[c] += next[c];
  }
  if (relu) {
    for (int64_t c = 0; c < channels; ++c) out[c] = out[c] < 0.0f ? 0.0f : out[c];
  }
}

// All pairs a * base + b: the terms of one axis to those of two.
std::vector<int64_t> pairs(const std::vector<int64_t>& as, const std::vector<int64_t>& bs,
                           int64_t base) {
  std::vector<int64_t> all;
  for (const int64_t a : as) {
    for (const int64_t b : bs) all.push_back(a * base + b);
  }
  return all;
}

}  // namespace

ToeplitzAxis::ToeplitzAxis(int64_t size)
    : n(1), products(1), inputs{{0}}, outputs{{0}}, kernel{{1}} {
  // Each level replaces the numbers of a 2x2 scheme by Toeplitz matrices half the size.
  for (; n < size; n *= 2, products *= 3) {
    std::vector<std::vector<int64_t>> in, out;
    std::vector<std::vector<int>> coefficients;
    for (int64_t p = 0; p < 3; ++p) {
      for (int64_t q = 0; q < products; ++q) {
        in.push_back(pairs(kInputs[p], inputs[q], n));
        // k_(n D + d) gets the product of the coefficients of D at this level and d below.
        std::vector<int> row(4 * n - 1, 0);
        for (int64_t block = -1; block <= 1; ++block) {
          for (int64_t d = 1 - n; d < n; ++d) {
            row[2 * n - 1 + n * block + d] += kKernel[p][1 + block] * kernel[q][n - 1 + d];
          }
        }
        coefficients.push_back(std::move(row));
      }
    }
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < n; ++j) out.push_back(pairs(kOutputs[i], outputs[j], products));
    }
    inputs = std::move(in);
    outputs = std::move(out);
    kernel = std::move(coefficients);
  }
  TORCH_CHECK(n == size, "ToeplitzAxis: ", size, " is not a power of two");
}

bool toeplitz_pays(int64_t n, int64_t k) {
  if (n != 2 && n != 4) return false;  // on 8x8 maps the additions outweigh what is saved
  const int64_t products = n == 2 ? 3 : 9;
  return products < n * k;
}

Tensor toeplitz_weights(const ToeplitzAxis& axis, const Tensor& kernel) {
  const int64_t k = kernel.size(2), reach = k / 2;
  const Tensor by_offset = kernel.permute({2, 3, 1, 0}).to(at::kDouble);  // [k, k, C, K]
  const int64_t p = axis.products;
  Tensor out = at::zeros({p * p, kernel.size(1), kernel.size(0)}, at::kDouble);
  const auto coefficient = [&](int64_t product, int64_t d) {
    return std::abs(d) < axis.n ? axis.kernel[product][axis.n - 1 + d] : 0;
  };
  for (int64_t a = 0; a < p; ++a) {
    for (int64_t b = 0; b < p; ++b) {
      Tensor sum = out[a * p + b];
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < k; ++j) {
          const int c = coefficient(a, i - reach) * coefficient(b, j - reach);
          if (c != 0) sum.add_(by_offset[i][j], c);
        }
      }
    }
  }
  return out.to(at::kFloat).contiguous();
}

void toeplitz_inputs(const ToeplitzAxis& axis, int64_t batch, int64_t channels, const float* x,
                     float* out) {
  const int64_t p = axis.products, map = axis.n * axis.n * channels;
  for (int64_t product = 0; product < p * p; ++product) {
    const auto terms = pairs(axis.inputs[product / p], axis.inputs[product % p], axis.n);
    for (int64_t b = 0; b < batch; ++b, out += channels) {
      add_up(x + b * map, terms.data(), static_cast<int64_t>(terms.size()), channels, channels,
             nullptr, false, out);
    }
  }
}

void toeplitz_outputs(const ToeplitzAxis& axis, int64_t batch, int64_t channels,
                      const float* products, const float* bias, bool relu, float* out) {
  const int64_t n = axis.n;
  std::vector<std::vector<int64_t>> terms;
  for (int64_t i = 0; i < n * n; ++i) {
    terms.push_back(pairs(axis.outputs[i / n], axis.outputs[i % n], axis.products));
  }
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n * n; ++i, out += channels) {
      add_up(products + b * channels, terms[i].data(), static_cast<int64_t>(terms[i].size()),
             batch * channels, channels, bias, relu, out);
    }
  }
}

}  // namespace fedsmooth
