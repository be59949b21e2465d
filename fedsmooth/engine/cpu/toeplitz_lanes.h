// A scheme's matrix along both axes of a tile, for sixteen independent values at a time, all sums
// in registers. For functions with FEDSMOOTH_VECTOR_CLONES, into which everything here is inlined.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define FEDSMOOTH_INLINE inline __attribute__((always_inline))
#define FEDSMOOTH_INLINE_LAMBDA __attribute__((always_inline))

namespace fedsmooth {

inline constexpr int64_t kToeplitzLanes = 16;
using ToeplitzLanes = float __attribute__((vector_size(kToeplitzLanes * sizeof(float))));

FEDSMOOTH_INLINE void load_lanes(const float* from, ToeplitzLanes& to) {
  std::memcpy(&to, from, sizeof(ToeplitzLanes));
}
FEDSMOOTH_INLINE void store_lanes(const ToeplitzLanes& from, float* to) {
  std::memcpy(to, &from, sizeof(ToeplitzLanes));
}

/// sum = row * x, for a row known when compiling: zeros vanish, ones become plain additions.
template <size_t kTerms>
FEDSMOOTH_INLINE void combine(const std::array<double, kTerms>& row, const ToeplitzLanes* x,
                              ToeplitzLanes& sum) {
  bool first = true;
#pragma GCC unroll 8
  for (size_t j = 0; j < kTerms; ++j) {
    const float factor = static_cast<float>(row[j]);
    if (factor == 0) continue;
    if (first) {
      sum = factor == 1 ? x[j] : factor * x[j];
    } else if (factor == 1) {
      sum += x[j];
    } else if (factor == -1) {
      sum -= x[j];
    } else {
      sum += factor * x[j];
    }
    first = false;
  }
}

/// out = matrix in matrix^T. load(i, j, value) gives an entry of `in`, store(p, value) takes the
/// entries of `out`, counted row by row.
template <const auto& kMatrix, class Load, class Store>
FEDSMOOTH_INLINE void along_both_axes(const Load& load, const Store& store) {
  constexpr int kRows = std::tuple_size_v<std::remove_cvref_t<decltype(kMatrix)>>;
  constexpr int kColumns = std::tuple_size_v<std::remove_cvref_t<decltype(kMatrix[0])>>;
  ToeplitzLanes rows[kRows][kColumns];  // after the first axis
  for (int64_t j = 0; j < kColumns; ++j) {
    ToeplitzLanes column[kColumns];
    for (int64_t i = 0; i < kColumns; ++i) load(i, j, column[i]);
#pragma GCC unroll 8
    for (int p = 0; p < kRows; ++p) combine(kMatrix[p], column, rows[p][j]);
  }
  for (int p = 0; p < kRows; ++p) {
#pragma GCC unroll 8
    for (int q = 0; q < kRows; ++q) {
      ToeplitzLanes sum;
      combine(kMatrix[q], rows[p], sum);
      store(p * kRows + q, sum);
    }
  }
}

}  // namespace fedsmooth
