// A step of SGD by PyTorch's rule, with FedProx's pull to the global weights if there are any.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {

// Four neighbouring weights, which are read and written by one access.
struct alignas(16) Four {
  float value[4];
};

inline __device__ Four load_four(const float* from) {
  const float4 values = __ldcs(reinterpret_cast<const float4*>(from));
  return {values.x, values.y, values.z, values.w};
}
inline __device__ void store_four(float* to, const Four& values) {
  *reinterpret_cast<Four*>(to) = values;
}

inline __device__ void store_four(bf16* to, const Four& values) {
  const __nv_bfloat162 halves[2] = {__floats2bfloat162_rn(values.value[0], values.value[1]),
                                    __floats2bfloat162_rn(values.value[2], values.value[3])};
  *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(halves);
}

// Applies a step to weights w with momentum v, at `position` of a kernel. The client's kernel
// begins at offset `client`.
template <typename T>
__device__ void step_four(const WeightUpdate& u, const ClientSettings& s, int64_t client,
                          int64_t position, const Four& gradient, Four w, Four v) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float g = u.real == nullptr || u.real[position + i] ? gradient.value[i] : 0.0f;
    if (u.global != nullptr) g += s.mu * (w.value[i] - u.global[client + position + i]);
    v.value[i] = s.momentum * v.value[i] + (g + s.weight_decay * w.value[i]);
    w.value[i] -= s.learning_rate * v.value[i];
  }
  const int64_t at = client + position;
  store_four(u.weights + at, w);
  store_four(u.velocity + at, v);
  if constexpr (sizeof(T) == 2) store_four(static_cast<T*>(u.working) + at, w);
}

}  // namespace fedsmooth
