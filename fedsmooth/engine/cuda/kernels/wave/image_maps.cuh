// Where images lie in a network's first map, and gradients with respect to them from that map's.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {

// Where a row's pixel lies in the first map.
inline __device__ int64_t place_in_map(const WaveShape& s, int pixels, bool rows_first, int client,
                                       int row, int pixel) {
  if (rows_first) return (static_cast<int64_t>(client) * s.rows + row) * pixels + pixel;
  return (static_cast<int64_t>(client) * pixels + pixel) * s.rows + row;
}

// Of a client's rows [first, first + count), the sum of the gradients with respect to the image,
// written to g. Pixels that meet no kernel are left alone.
template <typename T, class Map>
__device__ void sum_map_gradients(const WaveShape& s, const Map& map, int client, int first,
                                  int count, float* g) {
  const int eights = map.map_channels / 8;
  for (int i = threadIdx.x; i < map.pixels * eights; i += kThreads) {
    const int pixel = i / eights, eight = i % eights;
    const auto load = [&](int row) {
      const int64_t place = place_in_map(s, map.pixels, map.rows_first, client, row, pixel);
      return load_eight<T>(map.map_gradient, place * eights + eight);
    };
    float sums[8] = {};
    int row = first;
    for (; row + 1 < first + count; row += 2) {  // two reads under way together
      const Eight<T> parts[2] = {load(row), load(row + 1)};
      add_eight(sums, parts[0]);
      add_eight(sums, parts[1]);
    }
    if (row < first + count) add_eight(sums, load(row));
    const Eight<int16_t> source = load_eight<int16_t>(map.source, i);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      // Outside of the branch, so that eight reads are not one after another.
      const int value = source.value[j];
      const float scale = map.scale[(value >= 0 ? value : 0) / (s.height * s.width)];
      sums[j] *= scale;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (source.value[j] >= 0) g[source.value[j]] = sums[j];
    }
  }
}

}  // namespace fedsmooth
