#include "fedsmooth/base/matrix_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fedsmooth/base/check.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FEDSMOOTH_X86
#endif

namespace fedsmooth {
namespace {

constexpr int kLanes = 16;  // columns that every kernel can take at least

// One tile: all its sums are held in registers. Pointers are to the tile's first entries.
using Tile = void (*)(const Product& p, const float* left, const float* right, float* out);

#ifdef FEDSMOOTH_X86

template <int kRows, int kVectors>
__attribute__((target("avx512f"))) void tile_avx512(const Product& p, const float* left,
                                                    const float* right, float* out) {
  __m512 sums[kRows][kVectors] = {};
  if (p.add) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_loadu_ps(out + r * p.out_row + 16 * v);
    }
  }
  const int64_t row = p.left_row;
  for (int64_t d = 0; d < p.depth; ++d, left += p.left_column, right += p.right_row) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(left[r * row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_fmadd_ps(factor, _mm512_loadu_ps(right + 16 * v), sums[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(out + r * p.out_row + 16 * v, sums[r][v]);
  }
}

// Half the registers of half the size.
template <int kRows, int kVectors>
__attribute__((target("avx2,fma"))) void tile_avx2(const Product& p, const float* left,
                                                   const float* right, float* out) {
  static_assert(kVectors == 1);
  __m256 sums[kRows][2] = {};
  if (p.add) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sums[r][0] = _mm256_loadu_ps(out + r * p.out_row);
      sums[r][1] = _mm256_loadu_ps(out + r * p.out_row + 8);
    }
  }
  const int64_t row = p.left_row;
  for (int64_t d = 0; d < p.depth; ++d, left += p.left_column, right += p.right_row) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 factor = _mm256_set1_ps(left[r * row]);
      sums[r][0] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(right), sums[r][0]);
      sums[r][1] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(right + 8), sums[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(out + r * p.out_row, sums[r][0]);
    _mm256_storeu_ps(out + r * p.out_row + 8, sums[r][1]);
  }
}

#endif

template <int kRows, int kVectors>
void tile_portable(const Product& p, const float* left, const float* right, float* out) {
  static_assert(kRows == 1);
  constexpr int kWidth = kVectors * kLanes;
  float sums[kWidth] = {};
  if (p.add) std::copy_n(out, kWidth, sums);
  for (int64_t d = 0; d < p.depth; ++d, left += p.left_column, right += p.right_row) {
    for (int c = 0; c < kWidth; ++c) sums[c] += *left * right[c];
  }
  std::copy_n(sums, kWidth, out);
}

// Kernels for one width: tiles of 1, 2, ... rows.
struct Kernels {
  int64_t width = 0;
  int64_t most_rows = 0;
  std::array<Tile, 8> tiles = {};
};

#ifdef FEDSMOOTH_X86

template <int kVectors, int... kLess>
Kernels avx512_kernels(std::integer_sequence<int, kLess...>) {
  return {kVectors * kLanes, sizeof...(kLess), {tile_avx512<kLess + 1, kVectors>...}};
}

template <int... kLess>
Kernels avx2_kernels(std::integer_sequence<int, kLess...>) {
  return {kLanes, sizeof...(kLess), {tile_avx2<kLess + 1, 1>...}};
}

#endif

// The widest kernels for so many columns. More rows than these were no faster.
const Kernels& kernels_for(Instructions instructions, int64_t columns) {
#ifdef FEDSMOOTH_X86
  static const Kernels wide = avx512_kernels<4>(std::make_integer_sequence<int, 6>());
  static const Kernels middle = avx512_kernels<2>(std::make_integer_sequence<int, 8>());
  static const Kernels narrow = avx512_kernels<1>(std::make_integer_sequence<int, 8>());
  static const Kernels avx2 = avx2_kernels(std::make_integer_sequence<int, 6>());
  if (instructions == Instructions::kAvx512) {
    return columns >= wide.width ? wide : columns >= middle.width ? middle : narrow;
  }
  if (instructions == Instructions::kAvx2) return avx2;
#endif
  check(instructions == Instructions::kPortable, "multiply: no such instructions here");
  static const Kernels portable = {kLanes, 1, {tile_portable<1, 1>}};
  return portable;
}

Instructions find_instructions() {
#ifdef FEDSMOOTH_X86
  if (__builtin_cpu_supports("avx512f")) return Instructions::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Instructions::kAvx2;
#endif
  return Instructions::kPortable;
}

}  // namespace

Instructions best_instructions() {
  static const Instructions best = find_instructions();
  return best;
}

void multiply(const Product& p, Instructions instructions) {
  check(p.columns % kLanes == 0, "multiply: {} columns", p.columns);
  for (int64_t column = 0; column < p.columns;) {
    const Kernels& kernels = kernels_for(instructions, p.columns - column);
    for (int64_t row = 0; row < p.rows;) {
      const int64_t rows = std::min(kernels.most_rows, p.rows - row);
      kernels.tiles[rows - 1](p, p.left + row * p.left_row, p.right + column,
                              p.out + row * p.out_row + column);
      row += rows;
    }
    column += kernels.width;
  }
}

int64_t panel_width(int64_t columns) {
  check(columns % kLanes == 0, "panel_width: {} columns", columns);
  return columns % 32 == 0 ? 32 : 16;
}

Array pack_panels(const Array& matrices) {
  const int64_t rows = matrices.size(0) * matrices.size(1), columns = matrices.size(2);
  const int64_t width = panel_width(columns);
  Array panels({columns / width, matrices.size(0), matrices.size(1), width});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t panel = 0; panel < columns / width; ++panel) {
      std::copy_n(matrices.floats() + row * columns + panel * width, width,
                  panels.floats() + (panel * rows + row) * width);
    }
  }
  return panels;
}

}  // namespace fedsmooth
