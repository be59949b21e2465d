#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"

#include "fedsmooth/base/normal.h"
#include "fedsmooth/engine/cuda/kernels/block_sums.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/image_maps.cuh"

namespace fedsmooth {
namespace {

constexpr int kCropPadding = 4;  // as in data/augment.cpp

// Each block loads an image.
__global__ void __launch_bounds__(kThreads) load_images_kernel(WaveShape s, ImageLoad l) {
  __shared__ int top, left, flipped;
  const int image = blockIdx.x, client = blockIdx.y, step = *l.step;
  const int from = l.chosen[(client * l.steps + step) * s.batch + image];
  if (threadIdx.x == 0) {
    const int y = static_cast<int>(l.labels[from]);
    l.y[client * s.batch + image] = l.flips[client] ? s.classes - 1 - y : y;
    top = left = flipped = 0;
    if (l.augment) {
      const ClientSettings& c = l.settings[client];
      const philox4x32_ctr_t words =
          philox(l.augment_keys[client], 0, image, c.first_step + step, c.client);
      top = static_cast<int>(words.v[0] % (2 * kCropPadding + 1)) - kCropPadding;
      left = static_cast<int>(words.v[1] % (2 * kCropPadding + 1)) - kCropPadding;
      flipped = static_cast<int>(words.v[2] % 2);
    }
  }
  __syncthreads();
  const int64_t first = (static_cast<int64_t>(client) * s.batch + image) * s.image_size;
  const uint8_t* pixels = l.images + static_cast<int64_t>(from) * s.image_size;
  for (int i = threadIdx.x; i < s.image_size; i += kThreads) {
    const int column = i % s.width;
    const int to_row = i / s.width % s.height + top;
    const int to_column = (flipped ? s.width - 1 - column : column) + left;
    const bool inside = to_row >= 0 && to_row < s.height && to_column >= 0 && to_column < s.width;
    const int place = (i / (s.height * s.width) * s.height + to_row) * s.width + to_column;
    l.x[first + i] = l.x_adv[first + i] =
        inside ? __fdiv_rn(static_cast<float>(pixels[place]), 255.0f) : 0.0f;
  }
}

// Each thread draws four values of a sample, by one Philox call.
__global__ void draw_noise_kernel(WaveShape s, const ClientSettings* settings, const int* step,
                                  float* noise) {
  const int client = blockIdx.y, quads = (s.image_size + 3) / 4;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= s.batch * s.noises * quads) return;
  const int sample = i / quads, quad = i % quads;
  const ClientSettings& c = settings[client];
  const philox4x32_ctr_t words = philox(c.key, quad, sample, c.first_step + *step, c.client);
  float drawn[4];
  normal_pair(words.v[0], words.v[1], drawn[0], drawn[1]);
  normal_pair(words.v[2], words.v[3], drawn[2], drawn[3]);
  float* out = noise + (static_cast<int64_t>(client) * s.batch * s.noises + sample) * s.image_size;
  for (int j = 0; j < 4 && 4 * quad + j < s.image_size; ++j) {
    out[4 * quad + j] = __fmul_rn(drawn[j], c.sigma);
  }
}

// Each block makes one row: it writes the noisy image to shared memory in order, and from there to
// the map's pixels.
template <typename T>
__global__ void __launch_bounds__(kThreads) make_input_kernel(WaveShape s, InputMap m) {
  extern __shared__ float image[];
  const int row = blockIdx.x, client = blockIdx.y, eights = m.map.channels / 8;
  const int copies = m.first.copies + m.second.copies, copy = row % copies;
  const bool used = row < s.batch * copies, second = copy >= m.first.copies;
  if (used) {
    const ExampleCopies& kind = second ? m.second : m.first;
    const float *x = kind.x, *noise = kind.noise;
    const int64_t from = static_cast<int64_t>(client) * s.batch + row / copies;
    const int64_t sample = from * kind.copies + (second ? copy - m.first.copies : copy);
#pragma unroll 4
    for (int i = threadIdx.x; i < s.image_size; i += kThreads) {
      float value = x[from * s.image_size + i];
      if (noise != nullptr) value = value + noise[sample * s.image_size + i];
      const int c = i / (s.height * s.width);
      image[i] = (value - m.map.mean[c]) * m.map.scale[c];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < m.map.pixels * eights; i += kThreads) {
    const int pixel = i / eights, eight = i % eights;
    const Eight<int16_t> source = load_eight<int16_t>(m.map.source, i);
    Eight<T> out;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      store(out.value + j, used && source.value[j] >= 0 ? image[source.value[j]] : 0.0f);
    }
    store_eight(m.out, m.map.layout.offset(client, row, pixel) * eights + eight, out);
  }
}

__global__ void shift_logits_kernel(WaveShape s, const float* offsets, float* logits) {
  const int i = blockIdx.x * kThreads + threadIdx.x, client = blockIdx.y;
  const int size = s.rows * s.padded_classes;
  if (i >= size) return;
  logits[static_cast<int64_t>(client) * size + i] +=
      offsets[client * s.padded_classes + i % s.padded_classes];
}

// Each block handles a client, each thread one image at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads) attack_loss_kernel(WaveShape s, AttackLoss l) {
  const int client = blockIdx.x;
  const float* logits = l.logits + static_cast<int64_t>(client) * s.rows * s.padded_classes;
  T* out = static_cast<T*>(l.out) + static_cast<int64_t>(client) * s.rows * s.padded_classes;
  float* probability = l.probability + static_cast<int64_t>(client) * s.rows;
  for (int image = threadIdx.x; image < s.batch; image += kThreads) {
    const int y = l.y[client * s.batch + image];
    float mean = 0.0f;
    for (int i = 0; i < s.noises; ++i) {
      const int row = image * s.noises + i;
      const float* z = logits + row * s.padded_classes;
      float largest = z[0], sum = 0.0f;
      for (int k = 1; k < s.classes; ++k) largest = fmaxf(largest, z[k]);
      for (int k = 0; k < s.classes; ++k) sum += expf(z[k] - largest);
      probability[row] = expf(z[y] - largest) / sum;
      mean += probability[row];
    }
    mean /= static_cast<float>(s.noises);
    if (l.seen != nullptr && *l.step == 0) l.seen[client * s.batch + image] = mean;
    if (!l.gradient) continue;
    // J is -log of the mean, which is clamped at 1e-20.
    for (int i = 0; i < s.noises; ++i) {
      const int row = image * s.noises + i;
      const float* z = logits + row * s.padded_classes;
      float largest = z[0], sum = 0.0f;
      for (int k = 1; k < s.classes; ++k) largest = fmaxf(largest, z[k]);
      for (int k = 0; k < s.classes; ++k) sum += expf(z[k] - largest);
      const float factor =
          mean >= 1e-20f ? -probability[row] / (mean * static_cast<float>(s.noises)) : 0.0f;
      for (int k = 0; k < s.classes; ++k) {
        const float p = expf(z[k] - largest) / sum;
        store(out + row * s.padded_classes + k, factor * ((k == y ? 1.0f : 0.0f) - p));
      }
    }
  }
}

// Writes the gradient of one image to shared memory: the sum over its noises.
template <typename T>
__device__ void gather_gradient(const WaveShape& s, const AttackStep& a, float sigma, float* g) {
  const int image = blockIdx.x, client = blockIdx.y;
  if (a.map_gradient != nullptr) {
    sum_map_gradients<T>(s, a.map, a.map_gradient, client, image * s.noises, s.noises, g);
    return;
  }
  const int64_t first = (static_cast<int64_t>(client) * s.batch + image) * s.noises;
  const float* probability = a.probability + static_cast<int64_t>(client) * s.rows;
  for (int v = threadIdx.x; v < s.image_size; v += kThreads) {
    float sum = 0.0f;
    for (int n = 0; a.noise != nullptr && n < s.noises; ++n) {  // without noise it is zero
      float weight = probability[image * s.noises + n];
      if (a.baseline != nullptr)
        weight -= a.baseline[static_cast<int64_t>(client) * s.rows + image];
      sum += a.noise[(first + n) * s.image_size + v] * weight;
    }
    g[v] = sum / static_cast<float>(s.noises) / (-sigma * sigma);
  }
}

// Each block moves an image, each thread kOwn of its values, kThreads apart. They are read once,
// all at the same time as the gradient.
template <typename T, int kOwn>
__global__ void __launch_bounds__(kThreads, kOwn <= 12 ? 3 : 1)
    attack_kernel(WaveShape s, AttackStep a) {
  extern __shared__ float g[];
  const int image = blockIdx.x, client = blockIdx.y, size = s.image_size;
  const int64_t offset = (static_cast<int64_t>(client) * s.batch + image) * size;
  // Calls each(k, v) for a thread's values v, in order.
  const auto each_own = [&](const auto& each) {
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const int v = threadIdx.x + k * kThreads;
      if (v < size) each(k, v);
    }
  };
  float x[kOwn], moved[kOwn], off[kOwn];
  each_own([&](int k, int v) {
    x[k] = a.x[offset + v];
    moved[k] = a.x_adv[offset + v];
  });
  const ClientSettings c = a.settings[client];
  each_own([&](int, int v) { g[v] = 0.0f; });  // no kernel reads some pixels
  __syncthreads();
  gather_gradient<T>(s, a, c.sigma, g);
  __syncthreads();
  float squared_norm = 0.0f;
  each_own([&](int, int v) { squared_norm += g[v] * g[v]; });
  const float norm = a.normalize ? fmaxf(sqrtf(sum_block(squared_norm)), 1e-30f) : 1.0f;
  squared_norm = 0.0f;
  each_own([&](int k, int v) {
    off[k] = fminf(fmaxf(moved[k] + c.step_size * (g[v] / norm), 0.0f), 1.0f) - x[k];
    squared_norm += off[k] * off[k];
  });
  const float factor = fminf(c.epsilon / (sqrtf(sum_block(squared_norm)) + 1e-7f), 1.0f);
  squared_norm = 0.0f;
  each_own([&](int k, int v) {
    const float to = x[k] + off[k] * factor;
    a.x_adv[offset + v] = to;
    const float d = to - x[k];
    squared_norm += d * d;
  });
  const float length = sqrtf(sum_block(squared_norm));
  if (threadIdx.x == 0 && *a.step == 0) a.perturbation[client * s.batch + image] = length;
}

// Each block moves an image.
__global__ void __launch_bounds__(kThreads) take_first_step_kernel(WaveShape s, MixStep m) {
  const int image = blockIdx.x, client = blockIdx.y;
  const float most = m.mixing[client].first_step;
  if (most == 0.0f) return;
  const int64_t offset = (static_cast<int64_t>(client) * s.batch + image) * s.image_size;
  float* x = m.x + offset;
  const float* x_adv = m.x_adv + offset;
  float squared_norm = 0.0f;
  for (int v = threadIdx.x; v < s.image_size; v += kThreads) {
    const float d = x_adv[v] - x[v];
    squared_norm += d * d;
  }
  const float factor = fminf(most / (sqrtf(sum_block(squared_norm)) + 1e-7f), 1.0f);
  for (int v = threadIdx.x; v < s.image_size; v += kThreads) x[v] += (x_adv[v] - x[v]) * factor;
}

__global__ void __launch_bounds__(kThreads) mix_images_kernel(WaveShape s, MixStep m) {
  const int image = blockIdx.x, client = blockIdx.y;
  const ClientSettings& c = m.settings[client];
  const philox4x32_ctr_t words =
      philox(m.mixing[client].key, 0, image, c.first_step + *m.step, c.client);
  const float mix = static_cast<float>(words.v[0] >> 8) * 0x1p-24f / 2.0f;
  if (threadIdx.x == 0) m.mix[client * s.batch + image] = mix;
  const int64_t offset = (static_cast<int64_t>(client) * s.batch + image) * s.image_size;
  for (int64_t v = offset + threadIdx.x; v < offset + s.image_size; v += kThreads) {
    m.x_adv[v] = (1.0f - mix) * m.x[v] + mix * m.x_adv[v];
  }
}

__global__ void set_rates_kernel(int clients, int steps, const float* rates, const int* step,
                                 ClientSettings* settings) {
  const int client = blockIdx.x * kThreads + threadIdx.x;
  if (client < clients) settings[client].learning_rate = rates[client * steps + *step];
}

__global__ void next_step_kernel(int* step) { ++*step; }

}  // namespace

cudaError_t load_images(const WaveShape& shape, const ImageLoad& load, cudaStream_t stream) {
  load_images_kernel<<<dim3(shape.batch, shape.clients), kThreads, 0, stream>>>(shape, load);
  return cudaGetLastError();
}

cudaError_t draw_noise(const WaveShape& shape, const ClientSettings* settings, const int* step,
                       float* noise, cudaStream_t stream) {
  const int64_t calls = int64_t{shape.batch} * shape.noises * ((shape.image_size + 3) / 4);
  draw_noise_kernel<<<blocks_for(calls, shape.clients), kThreads, 0, stream>>>(shape, settings,
                                                                               step, noise);
  return cudaGetLastError();
}
cudaError_t make_input(Precision precision, const WaveShape& shape, const InputMap& map,
                       cudaStream_t stream) {
  const dim3 grid(shape.rows, shape.clients);
  const size_t bytes = sizeof(float) * shape.image_size;
  return launch_in(precision, [&](auto value) {
    make_input_kernel<decltype(value)><<<grid, kThreads, bytes, stream>>>(shape, map);
  });
}

cudaError_t shift_logits(const WaveShape& shape, const float* offsets, float* logits,
                         cudaStream_t stream) {
  const dim3 grid = blocks_for(int64_t{shape.rows} * shape.padded_classes, shape.clients);
  shift_logits_kernel<<<grid, kThreads, 0, stream>>>(shape, offsets, logits);
  return cudaGetLastError();
}

cudaError_t take_attack_loss(Precision precision, const WaveShape& shape, const AttackLoss& loss,
                             cudaStream_t stream) {
  return launch_in(precision, [&](auto value) {
    attack_loss_kernel<decltype(value)><<<shape.clients, kThreads, 0, stream>>>(shape, loss);
  });
}

cudaError_t step_attack(Precision precision, const WaveShape& shape, const AttackStep& attack,
                        cudaStream_t stream) {
  const dim3 grid(shape.batch, shape.clients);
  const size_t bytes = sizeof(float) * shape.image_size;
  constexpr int kFew = 12, kMany = 48;  // for CIFAR-10's images; for all that fit shared memory
  return launch_in(precision, [&](auto value) {
    using T = decltype(value);
    const auto kernel =
        shape.image_size <= kFew * kThreads ? attack_kernel<T, kFew> : attack_kernel<T, kMany>;
    kernel<<<grid, kThreads, bytes, stream>>>(shape, attack);
  });
}

cudaError_t take_first_step(const WaveShape& shape, const MixStep& step, cudaStream_t stream) {
  take_first_step_kernel<<<dim3(shape.batch, shape.clients), kThreads, 0, stream>>>(shape, step);
  return cudaGetLastError();
}

cudaError_t mix_images(const WaveShape& shape, const MixStep& step, cudaStream_t stream) {
  mix_images_kernel<<<dim3(shape.batch, shape.clients), kThreads, 0, stream>>>(shape, step);
  return cudaGetLastError();
}

cudaError_t find_kernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, next_step_kernel);
}

cudaError_t set_rates(int clients, int steps, const float* rates, const int* step,
                      ClientSettings* settings, cudaStream_t stream) {
  set_rates_kernel<<<(clients + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      clients, steps, rates, step, settings);
  return cudaGetLastError();
}

cudaError_t next_step(int* step, cudaStream_t stream) {
  next_step_kernel<<<1, 1, 0, stream>>>(step);
  return cudaGetLastError();
}

}  // namespace fedsmooth
