#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/noisy_rows.cuh"

namespace fedsmooth {
namespace {

// Calls each(i, channel, value) for the values of the copy at `place`, by all threads of the block.
template <bool kExact, class Each>
__device__ void each_noisy_value(const NoisyRows& r, int64_t place, const Each& each) {
  const NoisyCopies c = r.copies[request_of(r, place)];
  const float* x = r.x + static_cast<int64_t>(c.image) * r.image_size;
  const uint32_t sample = sample_of(c, place);
  for (int quad = threadIdx.x; 4 * quad < r.image_size; quad += kThreads) {
    const int channel = 4 * quad / r.area, next_channel = (channel + 1) * r.area;
    float clean[4], noisy[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) clean[j] = 4 * quad + j < r.image_size ? x[4 * quad + j] : 0.0f;
    noisy_quad<kExact>(r, c, sample, quad, clean, noisy);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int i = 4 * quad + j;
      if (i >= r.image_size) break;
      each(i, i < next_channel ? channel : i / r.area, noisy[j]);
    }
  }
}

// A block a row. The copy goes into shared memory in order, and from there to the map's pixels.
template <typename T, bool kExact>
__global__ void __launch_bounds__(kThreads) noisy_input_kernel(NoisyRows r) {
  extern __shared__ float image[];
  const int row = blockIdx.x, eights = r.map.channels / 8;
  const int64_t place = r.begin + row;
  const bool used = place < r.total;
  if (used) {
    each_noisy_value<kExact>(r, place, [&](int i, int c, float value) {
      image[i] = (value - r.map.mean[c]) * r.map.scale[c];
    });
  }
  __syncthreads();
  for (int i = threadIdx.x; i < r.map.pixels * eights; i += kThreads) {
    const Eight<int16_t> source = load_eight<int16_t>(r.map.source, i);
    Eight<T> out;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      store(out.value + j, used && source.value[j] >= 0 ? image[source.value[j]] : 0.0f);
    }
    store_eight(r.out, r.map.layout.offset(0, row, i / eights) * eights + i % eights, out);
  }
}

template <bool kExact>
__global__ void __launch_bounds__(kThreads) noisy_images_kernel(NoisyRows r, float* out) {
  const int64_t place = r.begin + blockIdx.x;
  if (place >= r.total) return;
  float* row = out + static_cast<int64_t>(blockIdx.x) * r.image_size;
  each_noisy_value<kExact>(r, place, [&](int i, int, float value) { row[i] = value; });
}

// The class with the largest logit, the lowest one on ties; -1 if one is not finite.
__device__ int vote_of(const float* z, int classes) {
  int best = 0;
  bool finite = true;
  for (int k = 0; k < classes; ++k) {
    finite = finite && isfinite(z[k]);
    if (z[k] > z[best]) best = k;
  }
  return finite ? best : -1;
}

__global__ void count_votes_kernel(VoteCount v) {
  const int row = blockIdx.x * kThreads + threadIdx.x;
  const int64_t place = v.rows.begin + row;
  if (row >= v.rows.rows || place >= v.rows.total) return;
  const int best = vote_of(v.logits + static_cast<int64_t>(row) * v.stride, v.classes);
  if (best < 0) return;
  // Of a warp's votes for the same class of the same request one thread adds up all.
  const int at = request_of(v.rows, place) * v.classes + best;
  const unsigned same = __match_any_sync(__activemask(), at);
  if (threadIdx.x % 32 == __ffs(same) - 1)
    atomicAdd(v.counts + at, static_cast<VoteCounter>(__popc(same)));
}

constexpr int kWarp = 32;

// A warp a row, and a block: first a lane for each network, then a lane for each class.
__global__ void __launch_bounds__(kWarp) count_group_votes_kernel(GroupVoteCount v) {
  extern __shared__ int32_t vote_of_group[];
  const int row = blockIdx.x, lane = threadIdx.x;
  const int64_t place = v.rows.begin + row;
  if (place >= v.rows.total) return;
  const float* z = v.logits + static_cast<int64_t>(row) * v.groups * v.classes;
  for (int g = lane; g < v.groups; g += kWarp) {
    vote_of_group[g] = vote_of(z + static_cast<int64_t>(g) * v.classes, v.classes);
  }
  __syncwarp();
  const int request = request_of(v.rows, place);
  const int asked = v.gaps != nullptr ? v.gaps_of[request] : -1;
  int most = 0, best = v.classes, own = 0, others = 0;
  for (int c = lane; c < v.classes; c += kWarp) {
    int votes = 0;
    for (int g = 0; g < v.groups; ++g) votes += vote_of_group[g] == c;
    if (votes > most) {
      most = votes;
      best = c;
    }
    if (c == asked) {
      own = votes;
    } else {
      others = max(others, votes + (c < asked ? 1 : 0));
    }
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const int its_most = __shfl_xor_sync(0xffffffffu, most, step);
    const int its_best = __shfl_xor_sync(0xffffffffu, best, step);
    if (its_most > most || (its_most == most && its_best < best)) {
      most = its_most;
      best = its_best;
    }
    own = max(own, __shfl_xor_sync(0xffffffffu, own, step));
    others = max(others, __shfl_xor_sync(0xffffffffu, others, step));
  }
  if (lane != 0) return;
  if (most > 0)
    atomicAdd(v.counts + static_cast<int64_t>(request) * v.classes + best, VoteCounter{1});
  if (v.gaps == nullptr) return;
  const int gap = most > 0 ? own - others : -1;
  const int at = gap < 0 ? v.groups + 1 : gap;
  atomicAdd(v.gaps + static_cast<int64_t>(request) * (v.groups + 2) + at, VoteCounter{1});
}

}  // namespace

cudaError_t make_noisy_input(Precision precision, const NoisyRows& r, cudaStream_t stream) {
  return launch_in(precision, [&](auto value) {
    using T = decltype(value);
    const auto kernel =
        r.exact.edges != nullptr ? noisy_input_kernel<T, true> : noisy_input_kernel<T, false>;
    kernel<<<r.rows, kThreads, sizeof(float) * r.image_size, stream>>>(r);
  });
}

cudaError_t make_noisy_images(const NoisyRows& r, float* out, cudaStream_t stream) {
  const auto kernel =
      r.exact.edges != nullptr ? noisy_images_kernel<true> : noisy_images_kernel<false>;
  kernel<<<r.rows, kThreads, 0, stream>>>(r, out);
  return cudaGetLastError();
}

cudaError_t count_votes(const VoteCount& v, cudaStream_t stream) {
  count_votes_kernel<<<blocks_for(v.rows.rows, 1), kThreads, 0, stream>>>(v);
  return cudaGetLastError();
}

cudaError_t count_group_votes(const GroupVoteCount& v, cudaStream_t stream) {
  const size_t shared = v.groups * sizeof(int32_t);  // at most 40 kB, by kMaxGroups
  count_group_votes_kernel<<<v.rows.rows, kWarp, shared, stream>>>(v);
  return cudaGetLastError();
}

}  // namespace fedsmooth
