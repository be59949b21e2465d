#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_gradient.cuh"

namespace fedsmooth {
namespace {

// Each thread adds up the pieces of four values of a kernel.
__global__ void __launch_bounds__(wide::kThreads)
    add_kernel(const float* room, int pieces, int64_t size, float* gradient,
               int64_t gradient_client) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * wide::kThreads + threadIdx.x) * 4;
  wait_for_earlier_kernels();
  if (i >= size) return;
  const float* from = room + static_cast<int64_t>(blockIdx.y) * pieces * size + i;
  float4 sum = *reinterpret_cast<const float4*>(from);
  for (int piece = 1; piece < pieces; ++piece) {
    const float4 more = *reinterpret_cast<const float4*>(from + piece * size);
    sum.x += more.x;
    sum.y += more.y;
    sum.z += more.z;
    sum.w += more.w;
  }
  *reinterpret_cast<float4*>(gradient + blockIdx.y * gradient_client + i) = sum;
}

}  // namespace

cudaError_t wide::add_pieces(const RowGradient& g, int pieces, cudaStream_t stream) {
  const int64_t size = kernel_values(g.forward);
  return launch_dependent(add_kernel, blocks_for(size / 4, g.forward.clients), wide::kThreads, 0,
                          stream, g.room, pieces, size, g.gradient, g.gradient_client);
}

cudaError_t differentiate_wide(const RowGradient& g, cudaStream_t stream) {
  return !g.forward.portable && has_hopper_kernels()
             ? differentiate_wide_hopper(g, stream)
             : wide::launch_gradient<wide::ByWarps>(g, stream);
}

int64_t wide_gradient_room(const RowConvolution& forward) {
  const int pieces = wide::cut_gradient(forward).pieces;
  return pieces == 1 ? 0 : int64_t{pieces} * forward.clients * wide::kernel_values(forward);
}

}  // namespace fedsmooth
