// One stage of a residual network in shared memory: maps of kChannels x kWidth x kWidth, 3x3
// convolutions with weights in registers.
//
// A map lies as planes of eight channels; a plane is rows of kWidth + 1 cells of 16 bytes (eight
// channels of a pixel). The one extra cell, zero, is both the right border of its row and the left
// border of the next. Eight neighbouring pixels are 128 bytes: no bank conflicts whatever the
// shift.
//
// A warp makes 16 output channels of kTiles x 16 pixels across, for kStripRows rows. It walks down
// the input rows; a fragment of an input row, loaded once for each of three horizontal shifts,
// serves the three output rows it contributes to, whose sums roll through registers.
#pragma once

#include <type_traits>

#include "tensor_ops.cuh"

namespace resnet {

/// The maps of a thread block.
template <int kChannelsOf, int kWidthOf, int kHaloOf, int kImagesOf, int kWarpsOf, int kResidentOf>
struct Layout {
  static constexpr int kChannels = kChannelsOf, kWidth = kWidthOf;
  static constexpr int kHalo = kHaloOf;      // rows of zeros above and below
  static constexpr int kImages = kImagesOf;  // of a thread block
  static constexpr int kWarps = kWarpsOf, kThreads = 32 * kWarps;
  static constexpr int kResident = kResidentOf;  // thread blocks of a multiprocessor
  static constexpr int kGroups = kChannels / 8, kChunks = kChannels / 16;
  static constexpr int kPitch = 16 * (kWidth + 1);
  static constexpr int kPlaneRows = kWidth + 2 * kHalo;
  static constexpr int kPlane = kPlaneRows * kPitch + 16;
  static constexpr int kMap = kGroups * kPlane;
  static constexpr int kMaps = kImages * kMap;
};

/// How warps share the maps out: strips of kStripRows rows, kTiles tiles of 16 pixels across. A
/// warp that has a whole column knows where its map ends and needs no halo.
template <int kChannels, int kWidth, int kStripRowsOf, int kImages, int kTilesOf, int kResident,
          bool kPrefetchOf>
struct Strips : Layout<kChannels, kWidth, (kStripRowsOf < kWidth), kImages,
                       kChannels / 16 * (kWidth * kImages / 16 / kTilesOf) * kWidth / kStripRowsOf,
                       kResident> {
  static constexpr int kStripRows = kStripRowsOf, kTiles = kTilesOf;
  static constexpr bool kPrefetch = kPrefetchOf;  // the next layer's weights, during a layer
  static constexpr int kTileGroups = kWidth * kImages / 16 / kTiles;
  static constexpr int kTileStep = kWidth < 16 ? 16 / kWidth * Strips::kMap : 16 * 16;
};

/// The layers of a stage that keep its shape, in order.
struct LayerList {
  const uint4* weights = nullptr;  // [layer, 16 outputs, chunk of 16 inputs, dx, dy, lane]
  const float* biases = nullptr;   // [layer, channel]
  int count = 0;
};

/// Where a warp and a lane work.
template <class S>
struct Place {
  int block;        // of 16 output channels
  uint32_t input;   // the lane's cell of the first row, one to the left, from the maps' beginning
  uint32_t output;  // its cell of the result

  __device__ Place() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    block = warp % S::kChunks;
    const int group = warp / S::kChunks % S::kTileGroups;
    const int strip = warp / (S::kChunks * S::kTileGroups);
    const int across = group * S::kTiles * 16 + lane % 16;
    const int image = across / S::kWidth, x = across % S::kWidth;
    input = image * S::kMap + lane / 16 * S::kPlane +
            (strip * S::kStripRows + S::kHalo) * S::kPitch + x * 16;
    output = input + 16 + block * 2 * S::kPlane;
  }
};

/// 16 outputs of a layer: the right factors of all its products, and the bias.
template <class S>
struct LayerWeights {
  uint4 taps[9 * S::kChunks];  // two factors [16, 8] each
  float2 bias[2];

  __device__ void load(const LayerList& layers, int layer, int block) {
    const int lane = threadIdx.x % 32;
    const uint4* from =
        layers.weights + static_cast<int64_t>(layer * S::kChunks + block) * 9 * S::kChunks * 32;
#pragma unroll
    for (int i = 0; i < 9 * S::kChunks; ++i) taps[i] = load_weights(from + i * 32 + lane);
    const float* b = layers.biases + layer * S::kChannels + block * 16 + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 2; ++n) bias[n] = {__ldg(b + 8 * n), __ldg(b + 8 * n + 1)};
  }
};

/// Sums of 16 pixels x 16 channels.
struct Sums {
  float v[2][4];

  __device__ void start(const float2 (&bias)[2]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      v[n][0] = v[n][2] = bias[n].x;
      v[n][1] = v[n][3] = bias[n].y;
    }
  }
  __device__ void start(const float2 (&bias)[2], const Fragment& saved) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t pair = saved.v[2 * n + half];
        v[n][2 * half] = low_half(pair) + bias[n].x;
        v[n][2 * half + 1] = high_half(pair) + bias[n].y;
      }
    }
  }
  __device__ void add(const Fragment& a, const uint4& b) {
    multiply_add(v[0], a, b.x, b.y);
    multiply_add(v[1], a, b.z, b.w);
  }
  template <bool kRelu>
  __device__ Fragment packed() const {
    return {{pack<kRelu>(v[0][0], v[0][1]), pack<kRelu>(v[0][2], v[0][3]),
             pack<kRelu>(v[1][0], v[1][1]), pack<kRelu>(v[1][2], v[1][3])}};
  }
};

/// out = relu(conv(in) + bias + out if kResidual). All indices are constants once unrolled.
template <class S, bool kResidual>
__device__ __forceinline__ void convolve(const LayerWeights<S>& w, uint32_t in, uint32_t out) {
  constexpr int kFirst = -S::kHalo, kEnd = S::kStripRows + S::kHalo;
  constexpr int kTaps = 3 * S::kChunks, kSteps = (kEnd - kFirst) * kTaps;
  constexpr int kRing = 3;  // fragments in flight, for the latency of shared memory
  Sums sums[3][S::kTiles];
  Fragment ring[kRing][S::kTiles], saved[2][S::kTiles];

  const auto fetch = [&](int step) {
    const int row = kFirst + step / kTaps, chunk = step % kTaps / 3, dx = step % 3;
#pragma unroll
    for (int t = 0; t < S::kTiles; ++t) {
      load_fragment(ring[step % kRing][t],
                    in + t * S::kTileStep + row * S::kPitch + chunk * 2 * S::kPlane + dx * 16);
    }
  };
  const auto fetch_saved = [&](int row) {
    if constexpr (kResidual) {
      if (row >= S::kStripRows) return;
#pragma unroll
      for (int t = 0; t < S::kTiles; ++t) {
        load_fragment(saved[row % 2][t], out + t * S::kTileStep + row * S::kPitch);
      }
    }
  };
  const auto start = [&](int row) {
    if (row >= S::kStripRows) return;
#pragma unroll
    for (int t = 0; t < S::kTiles; ++t) {
      if constexpr (kResidual) {
        sums[row % 3][t].start(w.bias, saved[row % 2][t]);
      } else {
        sums[row % 3][t].start(w.bias);
      }
    }
    fetch_saved(row + 2);
  };
  const auto finish = [&](int row) {
    if (row < 0) return;
#pragma unroll
    for (int t = 0; t < S::kTiles; ++t) {
      store_fragment(out + t * S::kTileStep + row * S::kPitch,
                     sums[row % 3][t].template packed<true>());
    }
  };

  fetch_saved(0);
  fetch_saved(1);
#pragma unroll
  for (int step = 0; step < kRing - 1; ++step) fetch(step);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int row = kFirst + step / kTaps, tap = step % kTaps;
    if (step == 0 && kFirst == 0) start(0);
    if (tap == 0) start(row + 1);
    if (step + kRing - 1 < kSteps) fetch(step + kRing - 1);
#pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
      const int to = row + 1 - dy;
      if (to < 0 || to >= S::kStripRows) continue;
#pragma unroll
      for (int t = 0; t < S::kTiles; ++t) {
        sums[to % 3][t].add(ring[step % kRing][t], w.taps[tap * 3 + dy]);
      }
    }
    if (tap == kTaps - 1) finish(row - 1);
  }
  if (S::kHalo == 0) finish(S::kStripRows - 1);
}

/// Layers by warps with strips.
template <class S>
struct StripEngine {
  using Weights = LayerWeights<S>;
  Place<S> place;

  __device__ void load(Weights& w, const LayerList& layers, int layer) const {
    w.load(layers, layer, place.block);
  }
  template <bool kResidual>
  __device__ __forceinline__ void convolve(const Weights& w, uint32_t in, uint32_t out) const {
    resnet::convolve<S, kResidual>(w, in + place.input, out + place.output);
  }
};

/// All layers: from x, or (a stage that begins inside a block) with the first layer's input in h.
/// The first weights are under way while ready() waits for the maps. kPrefetch: weights come during
/// the layer before, not after it; takes twice the registers.
template <class Engine, bool kInside, bool kPrefetch, class Ready>
__device__ __forceinline__ void run_layers(const LayerList& layers, uint32_t x, uint32_t h,
                                           const Ready& ready) {
  const Engine engine;
  typename Engine::Weights w;
  engine.load(w, layers, 0);
  ready();
  const auto step = [&](int layer, auto residual) {
    constexpr bool kResidual = decltype(residual)::value;
    const uint32_t in = kResidual ? h : x, out = kResidual ? x : h;
    const int after = min(layer + 1, layers.count - 1);
    if constexpr (kPrefetch) {
      typename Engine::Weights next;
      engine.load(next, layers, after);
      engine.template convolve<kResidual>(w, in, out);
      w = next;
    } else {
      engine.template convolve<kResidual>(w, in, out);
      engine.load(w, layers, after);
    }
    __syncthreads();
  };
  int layer = 0;
  if constexpr (kInside) step(layer++, std::true_type{});
#pragma unroll 1
  while (layer < layers.count) {
    step(layer++, std::false_type{});
    step(layer++, std::true_type{});
  }
}

/// Zeros the cells of a map that no layer writes.
template <class S>
__device__ void clear_borders(uint32_t map) {
  constexpr int kColumn = S::kPlaneRows + 1, kRow = S::kHalo * S::kWidth;
  constexpr int kCells = kColumn + 2 * kRow;
  for (int i = threadIdx.x; i < S::kGroups * kCells; i += S::kThreads) {
    const int cell = i % kCells;
    int at = cell * (S::kWidth + 1);
    if (cell >= kColumn) at = cell - kColumn + 1;  // the row above
    if (cell >= kColumn + kRow) at += (S::kPlaneRows - 1) * (S::kWidth + 1) - kRow;
    store_zero_16(map + i / kCells * S::kPlane + at * 16);
  }
}

/// Between stages a map is [row, group of 8 channels, y, x] in cells of 16 bytes.
template <class S>
__device__ void load_map(uint32_t map, const uint4* from) {
  constexpr int kArea = S::kWidth * S::kWidth;
#pragma unroll 8
  for (int i = threadIdx.x; i < S::kGroups * kArea; i += S::kThreads) {
    const int y = i % kArea / S::kWidth, x = i % S::kWidth;
    copy_16_bytes(map + i / kArea * S::kPlane + (y + S::kHalo) * S::kPitch + (x + 1) * 16,
                  from + i);
  }
}

/// The way into the next stage: its first convolution, stride 2, twice the channels, and the
/// shortcut, a 1x1 convolution, stride 2.
struct Transition {
  const uint4* weights = nullptr;   // [16 outputs, chunk of 16 inputs, dx, dy, lane]
  const uint4* shortcut = nullptr;  // [16 outputs, chunk of 16 inputs, lane]
  const float *bias = nullptr, *shortcut_bias = nullptr;
  uint32_t *h = nullptr, *x = nullptr;  // [row, group, y, x], as words
};

inline __device__ void load_bias(float2 (&bias)[2], const float* from) {
  from += threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < 2; ++n) bias[n] = {__ldg(from + 8 * n), __ldg(from + 8 * n + 1)};
}

/// Eight lanes' pixels of a group are 128 bytes in a row.
template <int kArea>
__device__ void store_tile(uint32_t* map, int block, int tile, const Fragment& f) {
  const int lane = threadIdx.x % 32;
  uint32_t* to = map + (block * 2 * kArea + tile * 16) * 4 + lane;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    to[n * kArea * 4] = f.v[2 * n];
    to[n * kArea * 4 + 32] = f.v[2 * n + 1];
  }
}

/// Two neighbouring tiles of 16 results with stride 2: twice the independent products of one.
template <class S>
struct TilePair {
  static constexpr int kSide = S::kWidth / 2;
  // A tile that is one row: the lowest input row of the first is the topmost of the second.
  static constexpr bool kShares = kSide == 16;
  Sums sums[2], shortcut[2];
  uint32_t above[2], center[2];  // a lane's cells, one to the left
  uint32_t above_step[2];        // to the next pixel

  __device__ TilePair(uint32_t map, int tile, const float2 (&bias)[2],
                      const float2 (&shortcut_bias)[2]) {
    const int lane = threadIdx.x % 32;
    const uint32_t plane = map + lane / 16 * S::kPlane;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int pixel = (tile + j) * 16 + lane % 16, y = pixel / kSide, column = pixel % kSide;
      center[j] = plane + (2 * y + S::kHalo) * S::kPitch + column * 2 * 16;
      // Without a halo, any zero cell stands for the row above the map.
      const bool outside = S::kHalo == 0 && y == 0;
      above[j] = outside ? plane : center[j] - S::kPitch;
      above_step[j] = outside ? 0 : 16;
      sums[j].start(bias);
      shortcut[j].start(shortcut_bias);
    }
  }

  // One chunk of input channels at one horizontal shift; w for the three rows.
  __device__ void add(int chunk, int dx, const uint4* w, const uint4& direct) {
    const uint32_t plane = chunk * 2 * S::kPlane;
    Fragment a[2][3];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (j == 0 || !kShares) load_fragment(a[j][0], above[j] + plane + dx * above_step[j]);
      load_fragment(a[j][1], center[j] + plane + dx * 16);
      load_fragment(a[j][2], center[j] + plane + dx * 16 + S::kPitch);
    }
    if (kShares) a[1][0] = a[0][2];
#pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
      sums[0].add(a[0][dy], w[dy]);
      sums[1].add(a[1][dy], w[dy]);
    }
    if (dx == 1) {
      shortcut[0].add(a[0][1], direct);
      shortcut[1].add(a[1][1], direct);
    }
  }
};

/// From the maps x in shared memory to the maps of rows from `row` on in device memory.
template <class S>
__device__ void enter_next_stage(const Transition& t, uint32_t x, int64_t row) {
  constexpr int kSide = S::kWidth / 2, kArea = kSide * kSide, kBlocks = 2 * S::kChunks;
  constexpr int kParts = S::kWarps > kBlocks ? S::kWarps / kBlocks : 1;
  constexpr int kPartTiles = kArea / 16 / kParts;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t size = int64_t{kBlocks} * 2 * kArea * 4;  // words of a map
#pragma unroll 1
  for (int item = warp; item < kBlocks * kParts; item += S::kWarps) {
    const int block = item % kBlocks, part = item / kBlocks;
    uint4 w[9 * S::kChunks], direct[S::kChunks];
#pragma unroll
    for (int i = 0; i < 9 * S::kChunks; ++i) {
      w[i] = load_weights(t.weights + (block * 9 * S::kChunks + i) * 32 + lane);
    }
#pragma unroll
    for (int i = 0; i < S::kChunks; ++i) {
      direct[i] = load_weights(t.shortcut + (block * S::kChunks + i) * 32 + lane);
    }
    float2 bias[2], shortcut_bias[2];
    load_bias(bias, t.bias + block * 16);
    load_bias(shortcut_bias, t.shortcut_bias + block * 16);
#pragma unroll 1
    for (int i = 0; i < S::kImages * kPartTiles; i += 2) {
      const int image = i / kPartTiles, tile = part * kPartTiles + i % kPartTiles;
      TilePair<S> pair(x + image * S::kMap, tile, bias, shortcut_bias);
#pragma unroll
      for (int tap = 0; tap < 3 * S::kChunks; ++tap) {
        pair.add(tap / 3, tap % 3, w + tap * 3, direct[tap / 3]);
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int64_t at = (row + image) * size;
        store_tile<kArea>(t.h + at, block, tile + j, pair.sums[j].template packed<true>());
        store_tile<kArea>(t.x + at, block, tile + j, pair.shortcut[j].template packed<false>());
      }
    }
  }
}

}  // namespace resnet
