#include "fedsmooth/engine/cuda/kernels/wave/batched_noises.h"

#include "fedsmooth/base/normal.h"
#include "fedsmooth/engine/cuda/kernels/block_sums.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/image_maps.cuh"

namespace fedsmooth {
namespace {

constexpr int kRowThreads = 64;

// Each thread computes a row.
template <typename T>
__global__ void __launch_bounds__(kRowThreads) target_loss_kernel(WaveShape s, TargetLoss l) {
  const int row = blockIdx.x * kRowThreads + threadIdx.x, client = blockIdx.y;
  if (row >= s.batch * s.noises) return;
  const int image = row / s.noises, y = l.y[client * s.batch + image];
  const int64_t at = static_cast<int64_t>(client) * s.rows + row;
  const float* z = l.logits + at * s.padded_classes;
  T* out = static_cast<T*>(l.out) + at * s.padded_classes;
  const float* target = nullptr;
  if (l.targets != nullptr) {
    const int64_t chosen = (static_cast<int64_t>(client) * l.steps + *l.step) * s.batch + image;
    target = l.targets + chosen * s.classes;
  }
  int answer = 0;
  for (int k = 1; k < s.classes; ++k) answer = z[k] > z[answer] ? k : answer;
  float sum = 0.0f;
  for (int k = 0; k < s.classes; ++k) sum += expf(z[k] - z[answer]);
  for (int k = 0; k < s.classes; ++k) {
    const float q = target != nullptr ? target[k] : static_cast<float>(k == y);
    store(out + k, expf(z[k] - z[answer]) / sum - q);
  }
  l.wrong[at] = answer != y;
}

// Projects a noise into the ball around delta, then gives it delta's mean and root mean square.
__device__ void keep_near(float* moved, const float* delta, int size) {
  float squares = 0.0f;
  for (int v = threadIdx.x; v < size; v += kThreads) {
    const float d = moved[v] - delta[v];
    squares += d * d;
  }
  constexpr auto kRadius = static_cast<float>(NoiseAscent::kRadius);
  const float factor = fminf(1.0f, kRadius / (sqrtf(sum_block(squares)) + 1e-7f));
  float sum = 0.0f, to_sum = 0.0f, to_squares = 0.0f;
  squares = 0.0f;
  for (int v = threadIdx.x; v < size; v += kThreads) {
    moved[v] = delta[v] + (moved[v] - delta[v]) * factor;
    sum += moved[v];
    squares += moved[v] * moved[v];
    to_sum += delta[v];
    to_squares += delta[v] * delta[v];
  }
  const float n = static_cast<float>(size);
  const float mean = sum_block(sum) / n, to_mean = sum_block(to_sum) / n;
  const float rms = sqrtf(sum_block(squares) / n), to_rms = sqrtf(sum_block(to_squares) / n);
  const float ratio = to_rms / fmaxf(rms, 1e-30f);
  for (int v = threadIdx.x; v < size; v += kThreads) {
    moved[v] = to_mean + (moved[v] - mean) * ratio;
  }
}

// Scales a noise to delta's length.
__device__ void keep_length(float* moved, const float* delta, int size) {
  float squares = 0.0f, to_squares = 0.0f;
  for (int v = threadIdx.x; v < size; v += kThreads) {
    squares += moved[v] * moved[v];
    to_squares += delta[v] * delta[v];
  }
  const float length = sqrtf(sum_block(squares)), to_length = sqrtf(sum_block(to_squares));
  const float factor = to_length / fmaxf(length, 1e-30f);
  for (int v = threadIdx.x; v < size; v += kThreads) moved[v] *= factor;
}

// Each block moves a noise. A thread handles the same values in every loop, so loops over them need
// no barrier.
template <typename T>
__global__ void __launch_bounds__(kThreads) step_noises_kernel(WaveShape s, NoiseStep n) {
  extern __shared__ float g[];
  const int row = blockIdx.x, client = blockIdx.y, size = s.image_size;
  const bool until_wrong = n.kind == NoiseAscent::Kind::kUntilWrong;
  if (until_wrong && n.wrong[static_cast<int64_t>(client) * s.rows + row]) return;
  const int64_t offset = (static_cast<int64_t>(client) * s.batch * s.noises + row) * size;
  const float* delta = n.delta + offset;
  float* moved = n.moved + offset;
  for (int v = threadIdx.x; v < size; v += kThreads) g[v] = 0.0f;  // no kernel reads some pixels
  __syncthreads();
  sum_map_gradients<T>(s, n.map, n.map_gradient, client, row, 1, g);
  __syncthreads();
  float squares = 0.0f;
  for (int v = threadIdx.x; v < size; v += kThreads) squares += g[v] * g[v];
  const float factor = n.settings[client].step_size / fmaxf(sqrtf(sum_block(squares)), 1e-30f);
  for (int v = threadIdx.x; v < size; v += kThreads) moved[v] += factor * g[v];
  if (until_wrong) {
    keep_length(moved, delta, size);
  } else {
    keep_near(moved, delta, size);
  }
}

__global__ void draw_uniforms_kernel(WaveShape s, const ClientSettings* settings,
                                     const MixSettings* mixing, const int* step, float* out) {
  const int image = blockIdx.x * kThreads + threadIdx.x, client = blockIdx.y;
  if (image >= s.batch) return;
  const ClientSettings& c = settings[client];
  const philox4x32_ctr_t words =
      philox(mixing[client].key, 0, image, c.first_step + *step, c.client);
  out[client * s.batch + image] = static_cast<float>(words.v[0] >> 8) * 0x1p-24f;
}

}  // namespace

cudaError_t take_target_loss(Precision precision, const WaveShape& shape, const TargetLoss& loss,
                             cudaStream_t stream) {
  const int rows = shape.batch * shape.noises;
  const dim3 grid((rows + kRowThreads - 1) / kRowThreads, shape.clients);
  return launch_in(precision, [&](auto value) {
    target_loss_kernel<decltype(value)><<<grid, kRowThreads, 0, stream>>>(shape, loss);
  });
}

cudaError_t step_noises(Precision precision, const WaveShape& shape, const NoiseStep& step,
                        cudaStream_t stream) {
  const dim3 grid(shape.batch * shape.noises, shape.clients);
  const size_t bytes = sizeof(float) * shape.image_size;
  return launch_in(precision, [&](auto value) {
    step_noises_kernel<decltype(value)><<<grid, kThreads, bytes, stream>>>(shape, step);
  });
}

cudaError_t draw_uniforms(const WaveShape& shape, const ClientSettings* settings,
                          const MixSettings* mixing, const int* step, float* out,
                          cudaStream_t stream) {
  draw_uniforms_kernel<<<blocks_for(shape.batch, shape.clients), kThreads, 0, stream>>>(
      shape, settings, mixing, step, out);
  return cudaGetLastError();
}

}  // namespace fedsmooth
