// Convolution on small square maps with fewer multiplications.
//
// A stride-1 convolution that keeps the size n of its map is, along each axis, a Toeplitz matrix
// y_i = sum_j k_(j-i) x_j. For n = 2 three products do instead of four:
//
//     m0 = k_0 (x_0 + x_1),  m1 = (k_1 - k_0) x_1,  m2 = (k_-1 - k_0) x_0
//     y_0 = m0 + m1,         y_1 = m0 + m2
//
// and for n = 4 the same on 2x2 blocks of 2x2 blocks: nine instead of sixteen. In two dimensions a
// 2x2 map takes 9 products of channel matrices and a 4x4 map 81, where the padded sliding window
// takes 36 (3x3 kernel) and 400 (5x5). Only additions surround the products, so the result is as
// accurate as that of the plain sum to within a small factor.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/base/tensor.h"

namespace fedsmooth {

/// One axis of a map of size n = 2^levels, as 3^levels products.
struct ToeplitzAxis {
  explicit ToeplitzAxis(int64_t n);

  int64_t n;
  int64_t products;
  std::vector<std::vector<int64_t>> inputs;   // per product: the x_j that are added up for it
  std::vector<std::vector<int64_t>> outputs;  // per y_i: the products that are added up for it
  std::vector<std::vector<int>> kernel;       // [product][n - 1 + d]: coefficient of k_d
};

/// Whether the products of a map of size n are fewer than those of a sliding kernel of size k.
bool toeplitz_pays(int64_t n, int64_t k);

/// The transformed weights [products^2, C, K] of a kernel [K, C, k, k] with padding k / 2.
Tensor toeplitz_weights(const ToeplitzAxis& axis, const Tensor& kernel);

/// [B, n, n, C] to [products^2, B, C].
void toeplitz_inputs(const ToeplitzAxis& axis, int64_t batch, int64_t channels, const float* x,
                     float* out);

/// [products^2, B, K] to [B, n, n, K], adding the bias and, if asked, applying ReLU.
void toeplitz_outputs(const ToeplitzAxis& axis, int64_t batch, int64_t channels,
                      const float* products, const float* bias, bool relu, float* out);

}  // namespace fedsmooth
