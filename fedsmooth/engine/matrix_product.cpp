#include "fedsmooth/engine/matrix_product.h"

#include <ATen/ATen.h>

#include <algorithm>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FEDSMOOTH_X86
#endif

namespace fedsmooth {
namespace {

// A tile is kRows rows times one panel, with all sums in registers.
using Tile = void (*)(const float* x, int64_t depth, const float* panel, float* out);

#ifdef FEDSMOOTH_X86

// Eight rows and two vectors take 16 of the 32 registers for sums, more than enough to hide the
// latency of a multiply-add; more rows were no faster.
template <int kRows, int kVectors>
__attribute__((target("avx512f"))) void tile_avx512(const float* x, int64_t depth,
                                                    const float* panel, float* out) {
  __m512 sums[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k, panel += 16 * kVectors) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(x[r * depth + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_fmadd_ps(factor, _mm512_loadu_ps(panel + 16 * v), sums[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v, out += 16) _mm512_storeu_ps(out, sums[r][v]);
  }
}

// Half the registers of half the size: 16 columns at a time, so that the sums fit.
template <int kRows, int kWidth>
__attribute__((target("avx2,fma"))) void tile_avx2(const float* x, int64_t depth,
                                                   const float* panel, float* out) {
  for (int column = 0; column < kWidth; column += 16) {
    __m256 sums[kRows][2] = {};
    const float* weights = panel + column;
    for (int64_t k = 0; k < depth; ++k, weights += kWidth) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256 factor = _mm256_set1_ps(x[r * depth + k]);
        sums[r][0] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(weights), sums[r][0]);
        sums[r][1] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(weights + 8), sums[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      _mm256_storeu_ps(out + r * kWidth + column, sums[r][0]);
      _mm256_storeu_ps(out + r * kWidth + column + 8, sums[r][1]);
    }
  }
}

#endif

template <int kRows, int kWidth>
void tile_portable(const float* x, int64_t depth, const float* panel, float* out) {
  float sums[kRows][kWidth] = {};
  for (int64_t k = 0; k < depth; ++k, panel += kWidth) {
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kWidth; ++c) sums[r][c] += x[r * depth + k] * panel[c];
    }
  }
  std::copy_n(sums[0], kRows * kWidth, out);
}

// The kernels of one set of instructions, for `rows` rows and for one; for panels of 16 and 32.
struct Kernels {
  int64_t rows;
  Tile many[2], one[2];
};

Kernels kernels_for(Instructions instructions) {
#ifdef FEDSMOOTH_X86
  if (instructions == Instructions::kAvx512) {
    return {8, {tile_avx512<8, 1>, tile_avx512<8, 2>}, {tile_avx512<1, 1>, tile_avx512<1, 2>}};
  }
  if (instructions == Instructions::kAvx2) {
    return {6, {tile_avx2<6, 16>, tile_avx2<6, 32>}, {tile_avx2<1, 16>, tile_avx2<1, 32>}};
  }
#endif
  TORCH_CHECK(instructions == Instructions::kPortable, "multiply_panel: no such instructions here");
  return {1,
          {tile_portable<1, 16>, tile_portable<1, 32>},
          {tile_portable<1, 16>, tile_portable<1, 32>}};
}

Instructions find_instructions() {
#ifdef FEDSMOOTH_X86
  if (__builtin_cpu_supports("avx512f")) return Instructions::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Instructions::kAvx2;
#endif
  return Instructions::kPortable;
}

}  // namespace

int64_t panel_width(int64_t columns) {
  TORCH_CHECK(columns % 16 == 0, "panel_width: ", columns, " columns, expected a multiple of 16");
  return columns % 32 == 0 ? 32 : 16;
}

Tensor pack_panels(const Tensor& matrices) {
  const int64_t width = panel_width(matrices.size(2));
  return matrices.view({matrices.size(0), matrices.size(1), -1, width})
      .permute({2, 0, 1, 3})
      .contiguous();
}

Instructions best_instructions() {
  static const Instructions best = find_instructions();
  return best;
}

void multiply_panel(const float* x, int64_t rows, int64_t depth, const float* panel, int64_t width,
                    float* out, Instructions instructions) {
  TORCH_CHECK(width == 16 || width == 32, "multiply_panel: a panel of ", width, " columns");
  const Kernels kernels = kernels_for(instructions);
  const Tile many = kernels.many[width / 32], one = kernels.one[width / 32];
  int64_t r = 0;
  for (; r + kernels.rows <= rows; r += kernels.rows) {
    many(x + r * depth, depth, panel, out + r * width);
  }
  for (; r < rows; ++r) one(x + r * depth, depth, panel, out + r * width);
}

}  // namespace fedsmooth
