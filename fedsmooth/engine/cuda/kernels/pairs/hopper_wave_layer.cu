#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_first_layer.cuh"

namespace fedsmooth {
namespace {

// With four warpgroups a thread has enough registers for all that it loads of a copy.
constexpr int kWarpgroups = 4, kThreadsOfBlock = kWarpgroups * 128;
// Number of clients whose weights a block has at a time. If there are no more clients than blocks,
// a block's share of the copies is of at most two clients.
constexpr int kClients = 2;
constexpr int kMaps = kClients * BlockWeights::kSize;
constexpr int kMemory = kMaps + kWarpgroups * 2 * BlockMap::kSize;

// A client's row of maps [client, pixel, row, channel].
struct WaveRow {
  int client, row;

  // Returns its offset in pixel 0, in units of a row's channels.
  __device__ int64_t place(const WaveShape& s, int pixels) const {
    return static_cast<int64_t>(client) * pixels * s.rows + row;
  }
};

// A thread's part of a copy in registers, while it is loaded.
struct CopyQuads {
  float4 x[6], noise[6];  // two quads of each color

  // Rows are those of make_input(). A noise is read only once in a pass, so it is not cached.
  __device__ void load(const FirstLayerWave& w, const WaveRow& of) {
    const ExampleCopies &first = w.images.first, &second = w.images.second;
    const int copies = first.copies + second.copies, copy = of.row % copies;
    const bool is_second = copy >= first.copies;
    const ExampleCopies& kind = is_second ? second : first;
    const int64_t image = static_cast<int64_t>(of.client) * w.shape.batch + of.row / copies;
    const int64_t sample = image * kind.copies + (is_second ? copy - first.copies : copy);
    const int thread = threadIdx.x % 128;
    const float4* from = reinterpret_cast<const float4*>(kind.x) + image * 3 * kQuads + thread;
    const float4* added =
        reinterpret_cast<const float4*>(kind.noise) + sample * 3 * kQuads + thread;
#pragma unroll
    for (int i = 0; i < 6; ++i) x[i] = __ldg(from + i * 128);
    if (kind.noise == nullptr) {
      // Adding -0 changes no bit.
#pragma unroll
      for (int i = 0; i < 6; ++i) noise[i] = make_float4(-0.0f, -0.0f, -0.0f, -0.0f);
    } else {
#pragma unroll
      for (int i = 0; i < 6; ++i) noise[i] = __ldcs(added + i * 128);
    }
  }

  __device__ void store(const FirstLayerWave& w, uint8_t* map) const {
#pragma unroll
    for (int color = 0; color < 3; ++color) {
      const float mean = __ldg(w.images.map.mean + color),
                  scale = __ldg(w.images.map.scale + color);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 a = x[color * 2 + half], b = noise[color * 2 + half];
        const float noisy[4] = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
        store_quad(map + cell_of(color, half), noisy, mean, scale);
      }
    }
    show_to_products();
  }
};

// Writes a row of the input map; cell(place) returns eight channels of a pixel, where `place` is
// their offset in a BlockMap.
template <class Cell>
__device__ void write_input(const FirstLayerWave& w, const WaveRow& of, const Cell& cell) {
  constexpr int kPixels = BlockMap::kSide * BlockMap::kSide, kAtOnce = 20;
  const int thread = threadIdx.x % 128;
  if (thread >= kAtOnce * BlockMap::kPlanes) return;
  // Eight threads write one color of four pixels, whose cells are in different banks.
  const int pixel = thread / 24 * 4 + thread % 8 / 2, plane = thread % 24 / 8 * 2 + thread % 2;
  const int64_t rows = w.shape.rows;
  Eight<bf16>* to = static_cast<Eight<bf16>*>(w.images.out) +
                    (of.place(w.shape, kPixels) + pixel * rows) * BlockMap::kPlanes + plane;
#pragma unroll 1
  for (int i = pixel; i < kPixels; i += kAtOnce) {
    *to = cell(plane * BlockMap::kPlane + i * 16);
    to += kAtOnce * rows * BlockMap::kPlanes;
  }
}

// Returns 0xFFFF in each half where a > b, which is false if one is NaN; else 0.
__device__ uint32_t where_greater(uint32_t a, uint32_t b) {
  return __hgt2_mask(bits_as<__nv_bfloat162>(a), bits_as<__nv_bfloat162>(b));
}

// Two outputs of a square's four pixels: the maxima after ReLU, and which pixels have them, by the
// rule of write_maxima() in hopper_maps.cuh. If ReLU changes a maximum, no pixel is chosen.
struct Square {
  uint32_t largest, choice;

  __device__ Square(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint32_t upper = larger(a, b), lower = larger(c, d);
    largest = larger(larger(upper, lower), 0u);
    const uint32_t is_lower = where_greater(lower, upper);
    const uint32_t right = (is_lower & where_greater(d, c)) | (~is_lower & where_greater(b, a));
    const uint32_t pixel = (right & 0x00010001u) | (is_lower & 0x00020002u);
    const uint32_t passes = where_greater(largest, 0u);
    choice = (passes & pixel) | (~passes & kNoChoice * 0x00010001u);
  }
};

__device__ void finish_copy(const FirstLayerWave& w, const float (&sums)[32], const WaveRow& of) {
  const TwoPixels own(sums, w.bias + of.client * w.weights_client);
  const bool right = is_right();
  uint32_t out[4], choice[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t upper = right ? own.upper[i + 4] : own.upper[i];
    const uint32_t lower = right ? own.lower[i + 4] : own.lower[i];
    const uint32_t upper_beside = __shfl_xor_sync(~0u, right ? own.upper[i] : own.upper[i + 4], 4);
    const uint32_t lower_beside = __shfl_xor_sync(~0u, right ? own.lower[i] : own.lower[i + 4], 4);
    const Square square(right ? upper_beside : upper, right ? upper : upper_beside,
                        right ? lower_beside : lower, right ? lower : lower_beside);
    out[i] = square.largest;
    choice[i] = square.choice;
  }
  const int64_t at = place_of_eight(of.place(w.shape, 16) * 8, w.shape.rows);
  static_cast<uint4*>(w.out)[at] = make_uint4(out[0], out[1], out[2], out[3]);
  if (w.choice == nullptr) return;
  reinterpret_cast<uint2*>(w.choice)[at] = make_uint2(__byte_perm(choice[0], choice[1], 0x6420),
                                                      __byte_perm(choice[2], choice[3], 0x6420));
}

// Finishes rows without a copy: their input is zero, and so are their sums.
__device__ void finish_empty_rows(const FirstLayerWave& w, int used, int warpgroup) {
  const int empty = w.shape.rows - used;
  for (int i = warpgroup * gridDim.x + blockIdx.x; i < w.shape.clients * empty;
       i += kWarpgroups * gridDim.x) {
    const WaveRow of{i / empty, used + i % empty};
    if (w.images.out != nullptr) write_input(w, of, [](int) { return Eight<bf16>{}; });
    const float sums[32] = {};
    finish_copy(w, sums, of);
  }
}

// Each block computes its share of all clients' copies in order, each warpgroup one copy at a time.
// While tensor cores work on a copy's map, the warpgroup loads its next copy.
__global__ void __launch_bounds__(kThreadsOfBlock, 1)
    wave_layer_kernel(const __grid_constant__ FirstLayerWave w, int copies) {
  extern __shared__ __align__(128) uint8_t memory[];
  const int warpgroup = uniform(threadIdx.x / 128);
  const int used = copies / w.shape.clients;  // rows of a client
  const int blocks = gridDim.x, block = blockIdx.x;
  const int share = copies / blocks, longer = copies % blocks;  // `longer` blocks get one more
  const int begin = block * share + min(block, longer), end = begin + share + (block < longer);
  int map = kMaps + warpgroup * 2 * BlockMap::kSize, next_map = map + BlockMap::kSize;
  clear_maps<kThreadsOfBlock>(memory, kMaps, kMemory);
  for (int first = begin; first < end;) {
    const int client = first / used, second = (client + 1) * used;
    const int last = min(end, second + used);  // end of the copies of these two clients
    const auto row_of = [&](int copy) {
      return copy < second ? WaveRow{client, copy - client * used}
                           : WaveRow{client + 1, copy - second};
    };
    int copy = first + warpgroup;
    CopyQuads quads;
    if (copy < last) quads.load(w, row_of(copy));
    __syncthreads();  // no product may still read the weights before
    load_weights<kThreadsOfBlock>(static_cast<const bf16*>(w.kernel) + client * w.weights_client,
                                  w.weights_client * 2, last > second ? 2 : 1, memory);
    show_to_products();
    __syncthreads();
    if (copy < last) quads.store(w, memory + map);
    while (copy < last) {
      const WaveRow of = row_of(copy);
      sync_warpgroup(warpgroup);
      float sums[32] = {};
      multiply(sums, shared_address(memory) + map,
               shared_address(memory) + (of.client - client) * BlockWeights::kSize);
      copy += kWarpgroups;
      if (copy < last) quads.load(w, row_of(copy));
      if (w.images.out != nullptr) {
        write_input(w, of, [&](int at) { return load_eight<bf16>(memory + map, at / 16); });
      }
      if (copy < last) quads.store(w, memory + next_map);
      wait_for_products<0>();
      finish_copy(w, sums, of);
      const int done = map;
      map = next_map;
      next_map = done;
    }
    first = last;
  }
  finish_empty_rows(w, used, warpgroup);
}

}  // namespace

cudaError_t make_first_layer(const FirstLayerWave& w, cudaStream_t stream) {
  const int copies =
      w.shape.clients * w.shape.batch * (w.images.first.copies + w.images.second.copies);
  return launch_first_layer(wave_layer_kernel, w, copies, kThreadsOfBlock, kMemory, stream);
}

}  // namespace fedsmooth
