#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"

#include "fedsmooth/engine/cuda/kernels/stages/residual_transition.cuh"
#include "fedsmooth/engine/cuda/kernels/stages/residual_warpgroup.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/noisy_rows.cuh"

namespace fedsmooth {
namespace residual {
namespace {

using Wide = Strips<0, /*rows of a strip*/ 16, /*resident*/ 3>;
using Middle = Strips<1, 16, 6>;
using Deep = Layout<2, /*halo*/ 1, /*images*/ 4, /*warps*/ 4, /*resident*/ 2>;

// The network's input in shared memory: pixels of 8 bytes (three channels and a zero), with a
// border of zeros. So a product of depth 16 covers four neighbouring pixels of a row.
struct NoisyImage {
  static constexpr int kPitch = 8 * (kImageSide + 4), kSize = (kImageSide + 2) * kPitch;
};

// Writes x + sigma e, computed in float32, normalised and rounded once. Each thread makes four
// pixels of a row.
template <bool kExact>
__device__ void draw_image(const NoisyRows& r, int64_t place, const Stem& stem, uint32_t image) {
  constexpr int kQuads = kImageSide * kImageSide / 4;  // of a channel
  const NoisyCopies c = r.copies[request_of(r, place)];
  const uint32_t sample = sample_of(c, place);
  const float4* x =
      reinterpret_cast<const float4*>(r.x) + int64_t{c.image} * kImageChannels * kQuads;
#pragma unroll 1
  for (int quad = threadIdx.x; quad < kQuads; quad += Wide::kThreads) {
    float value[kImageChannels][4];
#pragma unroll
    for (int channel = 0; channel < kImageChannels; ++channel) {
      const float4 pixels = __ldg(x + channel * kQuads + quad);
      const float clean[4] = {pixels.x, pixels.y, pixels.z, pixels.w};
      float noisy[4];
      noisy_quad<kExact>(r, c, sample, channel * kQuads + quad, clean, noisy);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        value[channel][j] = (noisy[j] - stem.mean[channel]) * stem.scale[channel];
      }
    }
    const uint32_t to = image + (quad / 8 + 1) * NoisyImage::kPitch + (quad % 8 * 4 + 1) * 8;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      store_word(to + j * 8, pack<false>(value[0][j], value[1][j]));
      store_word(to + j * 8 + 4, pack<false>(value[2][j], 0.0f));
    }
  }
}

// Computes the first layer, row by row like convolve_strip().
__device__ void run_stem(const Stem& stem, uint32_t image, uint32_t x) {
  const Place<Wide> place;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint4 w[3];
#pragma unroll
  for (int dy = 0; dy < 3; ++dy) w[dy] = load_weights(stem.weights + dy * 32 + lane);
  float2 bias[2];
  load_bias(bias, stem.bias);
  // The address of the pixel to the left of pixel x0 + lane / 4.
  const uint32_t in = image + warp / 2 * Wide::kStripRows * NoisyImage::kPitch +
                      (warp % 2 * 16 + lane / 4) * 8 + lane % 4 * 4;
  const uint32_t out = x + place.output;
  const auto fetch = [&](int row) -> Fragment {
    const uint32_t at = in + (row + 1) * NoisyImage::kPitch;
    return {{load_word(at), load_word(at + 64), load_word(at + 16), load_word(at + 80)}};
  };
  Sums sums[3];
  Fragment next = fetch(-1);
#pragma unroll
  for (int row = -1; row <= Wide::kStripRows; ++row) {
    if (row + 1 < Wide::kStripRows) sums[(row + 1) % 3].start(bias);
    const Fragment a = next;
    if (row < Wide::kStripRows) next = fetch(row + 1);
#pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
      const int to = row + 1 - dy;
      if (to >= 0 && to < Wide::kStripRows) sums[to % 3].add(a, w[dy]);
    }
    if (row >= 1) {
      store_fragment(out + (row - 1) * Wide::kPitch, sums[(row - 1) % 3].packed<true>());
    }
  }
}

// Each thread block computes a row: its noisy copy, the first layer, and the first stage.
template <bool kExact>
__global__ void __launch_bounds__(Wide::kThreads, Wide::kResident)
    wide_stage(NoisyRows rows, Stem stem, LayerList layers, Transition next) {
  extern __shared__ __align__(128) uint8_t memory[];
  const uint32_t x = shared_address(memory), h = x + Wide::kMaps, image = h;
  static_assert(NoisyImage::kSize <= Wide::kMap);
  for (int i = threadIdx.x; i < NoisyImage::kSize / 16; i += Wide::kThreads) {
    store_zero_16(image + i * 16);
  }
  clear_borders<Wide>(x);
  __syncthreads();
  draw_image<kExact>(rows, rows.begin + blockIdx.x, stem, image);
  __syncthreads();
  run_stem(stem, image, x);
  run_layers<StripEngine<Wide>, /*kInside=*/false, /*kPrefetch=*/true>(layers, x, h, [&] {
    __syncthreads();
    clear_borders<Wide>(h);  // the second layer reads it, after the first one's barrier
  });
  enter_next_stage<Wide>(next, x, blockIdx.x);
}

__global__ void __launch_bounds__(Middle::kThreads, Middle::kResident)
    middle_stage(Transition before, LayerList layers, Transition next) {
  extern __shared__ __align__(128) uint8_t memory[];
  const uint32_t x = shared_address(memory), h = x + Middle::kMaps;
  load_maps<Middle>(x, h, before);
  run_layers<StripEngine<Middle>, /*kInside=*/true, /*kPrefetch=*/false>(layers, x, h,
                                                                         wait_for_maps);
  enter_next_stage<Middle>(next, x, blockIdx.x);
}

// Computes means [image, channel] over the pixels of the maps x. Each thread computes two channels.
__device__ void average(float* means, uint32_t x) {
  constexpr int kPairs = Deep::kChannels / 2, kArea = Deep::kWidth * Deep::kWidth;
  for (int i = threadIdx.x; i < Deep::kImages * kPairs; i += Deep::kThreads) {
    const int pair = i % kPairs;
    const uint32_t from = x + i / kPairs * Deep::kMap + pair / 4 * Deep::kPlane + pair % 4 * 4 +
                          Deep::kHalo * Deep::kPitch + 16;
    float low = 0, high = 0;
#pragma unroll 8
    for (int pixel = 0; pixel < kArea; ++pixel) {
      const uint32_t word =
          load_word(from + pixel / Deep::kWidth * Deep::kPitch + pixel % Deep::kWidth * 16);
      low += low_half(word);
      high += high_half(word);
    }
    means[2 * i] = low * (1.0f / kArea);
    means[2 * i + 1] = high * (1.0f / kArea);
  }
}

struct Ballot {
  NoisyRows rows;
  int used;  // number of used rows
  VoteCounter* counts;
  float* logits;
};

// Counts a row's vote by the rule of count_votes(), and writes its logits.
__device__ void vote(const Ballot& ballot, int classes, const float* logits, int row) {
  if (row >= ballot.used) return;
  int best = 0;
  bool finite = true;
  for (int k = 0; k < classes; ++k) {
    finite = finite && isfinite(logits[k]);
    if (logits[k] > logits[best]) best = k;
    if (ballot.logits) ballot.logits[int64_t{row} * classes + k] = logits[k];
  }
  if (finite && ballot.counts) {
    const int request = request_of(ballot.rows, ballot.rows.begin + row);
    atomicAdd(ballot.counts + request * classes + best, VoteCounter{1});
  }
}

// Each thread block computes four rows. Unused rows of the last one have maps of an earlier pass,
// which vote() ignores.
__global__ void __launch_bounds__(Deep::kThreads, Deep::kResident)
    deep_stage(Transition before, LayerList layers, Head head, Ballot ballot) {
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ float means[Deep::kImages * Deep::kChannels];
  __shared__ float logits[Deep::kImages * kMaxClasses];
  const uint32_t x = shared_address(memory), h = x + Deep::kMaps;
  load_maps<Deep>(x, h, before);
  run_layers<WarpgroupEngine<Deep>, /*kInside=*/true, /*kPrefetch=*/false>(layers, x, h,
                                                                           wait_for_maps);
  average(means, x);
  __syncthreads();
  for (int i = threadIdx.x; i < Deep::kImages * head.classes; i += Deep::kThreads) {
    const int image = i / head.classes, k = i % head.classes;
    float sum = __ldg(head.bias + k);
    for (int c = 0; c < Deep::kChannels; ++c) {
      sum += means[image * Deep::kChannels + c] * __ldg(head.weights + k * Deep::kChannels + c);
    }
    logits[image * kMaxClasses + k] = sum;
  }
  __syncthreads();
  if (threadIdx.x < Deep::kImages) {
    vote(ballot, head.classes, logits + threadIdx.x * kMaxClasses,
         blockIdx.x * Deep::kImages + threadIdx.x);
  }
}

// Allows a kernel the shared memory for x and h.
template <class S, class Kernel>
cudaError_t allow_memory(Kernel kernel) {
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 2 * S::kMaps);
  if (status != cudaSuccess) return status;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                              cudaSharedmemCarveoutMaxShared);
}

cudaError_t allow_memory() {
  for (const cudaError_t status :
       {allow_memory<Wide>(wide_stage<false>), allow_memory<Wide>(wide_stage<true>),
        allow_memory<Middle>(middle_stage), allow_memory<Deep>(deep_stage)}) {
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace residual

cudaError_t count_residual_votes(const ResidualVotes& v, cudaStream_t stream) {
  using namespace residual;
  const int64_t left = v.rows.total - v.rows.begin;
  const int used = static_cast<int>(left < v.rows.rows ? left : v.rows.rows);
  if (used <= 0) return cudaSuccess;
  const cudaError_t status = allow_memory();
  if (status != cudaSuccess) return status;
  const auto first = v.rows.exact.edges != nullptr ? wide_stage<true> : wide_stage<false>;
  first<<<used, Wide::kThreads, 2 * Wide::kMaps, stream>>>(v.rows, v.stem, v.layers[0], v.next[0]);
  middle_stage<<<used, Middle::kThreads, 2 * Middle::kMaps, stream>>>(v.next[0], v.layers[1],
                                                                      v.next[1]);
  const int blocks = (used + Deep::kImages - 1) / Deep::kImages;
  deep_stage<<<blocks, Deep::kThreads, 2 * Deep::kMaps, stream>>>(
      v.next[1], v.layers[2], v.head, Ballot{v.rows, used, v.counts, v.logits});
  return cudaGetLastError();
}

}  // namespace fedsmooth
