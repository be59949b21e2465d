// Short convolutions with few multiplications (Toom and Cook; Winograd).
//
// Along one axis, a stride-1 convolution is a Toeplitz matrix y_i = sum_d k_d x_(i + d). A scheme
// computes a tile of y from few products of sums of k with sums of x,
//
//     y = outputs ((kernel k) * (inputs x)),      * entry by entry,
//
// and does so along both axes at once, with matrices [C, K] between channels in place of numbers.
//
// Multiplying polynomials is such a scheme: the values of two factors at as many points as their
// product has coefficients, multiplied, give these by interpolation. So sum_m h_m c_m, c = f g, is
// a sum of products of sums of f, g and h, each of which may take the part of the result: with y
// for g, either k is h and x is f (a whole map) or k is f and x is h (a tile of a larger one). The
// points are short binary fractions, which multiply exactly, found by search for small errors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fedsmooth {

template <size_t kRows, size_t kColumns>
using Entries = std::array<std::array<double, kColumns>, kRows>;

/// Rows t^0, t^1, ... for each point t, and last for infinity, which takes the highest power.
template <size_t kTerms, size_t kPoints>
constexpr Entries<kPoints + 1, kTerms> powers(const std::array<double, kPoints>& points) {
  Entries<kPoints + 1, kTerms> out{};
  for (size_t p = 0; p < kPoints; ++p) {
    double power = 1;
    for (double& entry : out[p]) entry = power, power *= points[p];
  }
  out[kPoints][kTerms - 1] = 1;
  return out;
}

/// For each point the polynomial, as coefficients, that is zero at all others; for infinity at all.
template <size_t kPoints>
constexpr Entries<kPoints + 1, kPoints + 1> polynomials(const std::array<double, kPoints>& points) {
  Entries<kPoints + 1, kPoints + 1> out{};
  for (size_t p = 0; p <= kPoints; ++p) {
    out[p][0] = 1;
    for (size_t q = 0; q < kPoints; ++q) {
      if (q == p) continue;
      for (size_t m = kPoints; m > 0; --m) out[p][m] = out[p][m - 1] - points[q] * out[p][m];
      out[p][0] *= -points[q];
    }
  }
  return out;
}

/// Each row over the value of its polynomial at its point.
template <size_t kPoints, size_t kTerms>
constexpr Entries<kPoints + 1, kTerms> divided(Entries<kPoints + 1, kTerms> rows,
                                               const std::array<double, kPoints>& points) {
  for (size_t p = 0; p < kPoints; ++p) {
    double value = 1;
    for (size_t q = 0; q < kPoints; ++q) value *= q == p ? 1 : points[p] - points[q];
    for (double& entry : rows[p]) entry /= value;
  }
  return rows;
}

/// Columns [first, first + kCount).
template <size_t kCount, size_t kRows, size_t kColumns>
constexpr Entries<kRows, kCount> columns(const Entries<kRows, kColumns>& in, size_t first) {
  Entries<kRows, kCount> out{};
  for (size_t i = 0; i < kRows * kCount; ++i)
    out[i / kCount][i % kCount] = in[i / kCount][first + i % kCount];
  return out;
}

/// Columns as rows, the last one first if asked.
template <size_t kRows, size_t kColumns>
constexpr Entries<kColumns, kRows> transposed(const Entries<kRows, kColumns>& in, bool backwards) {
  Entries<kColumns, kRows> out{};
  for (size_t i = 0; i < kColumns; ++i) {
    for (size_t j = 0; j < kRows; ++j) out[i][j] = in[j][backwards ? kColumns - 1 - i : i];
  }
  return out;
}

struct SchemeSize {
  int64_t outputs, products, taps;
  int64_t window;   // inputs of a tile
  int64_t skipped;  // padding before the window: y_i takes k_d of x_(i + d - skipped)
};

/// The whole of a map of size 2, padding 1: in two dimensions 9 products where the window takes 36.
struct Whole2 {
  static constexpr SchemeSize kSize = {2, 3, 3, 2, 1};
  static constexpr std::array<double, 2> kPoints = {0, 1};
  static constexpr auto kInputs = powers<2>(kPoints);
  static constexpr auto kOutputs = transposed(powers<2>(kPoints), true);
  static constexpr auto kKernel = divided(polynomials(kPoints), kPoints);
};

/// The whole of a map of size 4, padding 2: 49 products for 400.
struct Whole4 {
  static constexpr SchemeSize kSize = {4, 7, 5, 4, 2};
  static constexpr std::array<double, 6> kPoints = {0, 0.5, -0.5, 1.75, -1.75, -1};
  static constexpr auto kInputs = powers<4>(kPoints);
  static constexpr auto kOutputs = transposed(powers<4>(kPoints), true);
  // The outer two of seven diagonals of a 4x4 matrix lie beyond five taps.
  static constexpr auto kKernel = columns<5>(divided(polynomials(kPoints), kPoints), 1);
};

/// Tiles of 4 outputs, 3 taps, any padding: 36 products for 144.
struct Tile4 {
  static constexpr SchemeSize kSize = {4, 6, 3, 6, 0};
  static constexpr std::array<double, 5> kPoints = {0, 0.75, -0.75, 1.5, -1.5};
  static constexpr auto kInputs = polynomials(kPoints);
  static constexpr auto kOutputs = transposed(powers<4>(kPoints), false);
  static constexpr auto kKernel = divided(powers<3>(kPoints), kPoints);
};

}  // namespace fedsmooth
