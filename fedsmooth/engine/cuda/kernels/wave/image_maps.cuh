// Gradients with respect to images, computed from those of a network's first map.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {

// Writes to g [image] the sum over a client's rows [first, first + count) of the gradients with
// respect to the image. Values that no cell of the map reads are left unchanged.
template <typename T>
__device__ void sum_map_gradients(const WaveShape& s, const FirstMap& map, const void* map_gradient,
                                  int client, int first, int count, float* g) {
  const int eights = map.channels / 8;
  for (int i = threadIdx.x; i < map.pixels * eights; i += kThreads) {
    const int pixel = i / eights, eight = i % eights;
    const auto load = [&](int row) {
      return load_eight<T>(map_gradient, map.layout.offset(client, row, pixel) * eights + eight);
    };
    float sums[8] = {};
    int row = first;
    for (; row + 1 < first + count; row += 2) {  // two reads at the same time
      const Eight<T> parts[2] = {load(row), load(row + 1)};
      add_eight(sums, parts[0]);
      add_eight(sums, parts[1]);
    }
    if (row < first + count) add_eight(sums, load(row));
    const Eight<int16_t> source = load_eight<int16_t>(map.source, i);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      // Outside the branch, so that the eight reads do not wait for each other.
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
