// The noisy copy of a row: its request in the list of all copies, and the noise that it gets.
#pragma once

#include "fedsmooth/base/normal.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"

namespace fedsmooth {

// Returns the index of the request of copy `place` of the list.
inline __device__ int request_of(const NoisyRows& r, int64_t place) {
  int low = 0, high = r.requests;  // the request is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (r.copies[middle].first <= place ? low : high) = middle;
  }
  return low;
}

// Returns the number of the sample of copy `place`, which belongs to request c.
inline __device__ uint32_t sample_of(const NoisyCopies& c, int64_t place) {
  return c.sample + static_cast<uint32_t>(place - c.first);
}

// Sets `found` to the cell of `bits`, as ExactNoise::cell() finds it, and returns whether the bits
// are further than the margin from every edge. below(i) and above(i) return whether edge i is below
// or above the bits by more than the margin.
template <class Below, class Above>
__device__ bool find_cell(const ExactCells& cells, uint64_t bits, const Below& below,
                          const Above& above, int32_t& found) {
  int low = __ldg(cells.start + (bits >> 54)), high = __ldg(cells.start + (bits >> 54) + 1);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (below(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  found = cells.lowest + low;
  return low == cells.count || above(low);
}

// Decides with 64 more bits, which is needed about once in 10^11 draws.
__device__ __noinline__ inline bool find_cell_by_more(const ExactCells& cells, uint64_t bits,
                                                      uint64_t further, int32_t& found) {
  using Wide = unsigned __int128;
  constexpr Wide kMargin = ExactCells::kMargin;
  const Wide all = Wide{bits} << 64 | further;
  const auto edge = [&](int i) { return Wide{cells.fine[2 * i]} << 64 | cells.fine[2 * i + 1]; };
  return find_cell(
      cells, bits, [&](int i) { return edge(i) < all && all - edge(i) > kMargin; },
      [&](int i) { return edge(i) > all && edge(i) - all > kMargin; }, found);
}

// Returns clip(x + k / 255) for coordinate j, where k is the cell of `bits`. NaN if k cannot be
// decided.
__device__ inline float exact_value(const ExactCells& cells, const NoisyCopies& c, uint32_t sample,
                                    int j, uint64_t bits, float x) {
  constexpr uint64_t kMargin = ExactCells::kMargin;
  int32_t k = 0;
  bool decided = find_cell(
      cells, bits,
      [&](int i) {
        const uint64_t edge = __ldg(cells.edges + i);
        return edge < bits && bits - edge > kMargin;
      },
      [&](int i) {
        const uint64_t edge = __ldg(cells.edges + i);
        return edge > bits && edge - bits > kMargin;
      },
      k);
  if (!decided) {
    const auto words =
        philox(c.key, static_cast<uint32_t>(j / 2) | kFurtherBits, sample, c.item, c.client);
    const uint64_t further = uint64_t{words.v[j % 2 * 2]} << 32 | words.v[j % 2 * 2 + 1];
    decided = find_cell_by_more(cells, bits, further, k);
  }
  if (!decided) return NAN;
  const int32_t end = 255 * cells.reach;
  const int32_t z = min(max(__float2int_rn(255.0f * x) + k, -end), end + 255);
  return __ldg(cells.values + z + end);
}

// Computes four values of a copy, from coordinate 4 * quad on.
template <bool kExact>
__device__ void noisy_quad(const NoisyRows& r, const NoisyCopies& c, uint32_t sample, int quad,
                           const float* clean, float* noisy) {
  if constexpr (kExact) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto words = philox(c.key, 2 * quad + half, sample, c.item, c.client);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int j = 2 * half + i;
        const uint64_t bits = uint64_t{words.v[2 * i]} << 32 | words.v[2 * i + 1];
        noisy[j] = exact_value(r.exact, c, sample, 4 * quad + j, bits, clean[j]);
      }
    }
  } else {
    float drawn[4];
    draw_noise(c.key, quad, sample, c.item, c.client, drawn);
#pragma unroll
    for (int j = 0; j < 4; ++j) noisy[j] = add(clean[j], multiply(c.sigma, drawn[j]));
  }
}

}  // namespace fedsmooth
