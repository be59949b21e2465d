#include "fedsmooth/engine/cuda/kernels/wave/mean_logits.h"

namespace fedsmooth {
namespace {

constexpr int kBlock = 256;

__global__ void __launch_bounds__(kBlock) add_logits_kernel(MemberLogits m) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= m.rows * m.classes) return;
  const int64_t row = i / m.classes;
  const float logit = m.logits[row * m.stride + i % m.classes];
  float sum = m.member == 0 ? logit : __fadd_rn(m.out[i], logit);
  if (m.member == m.members - 1) sum = __fdiv_rn(sum, static_cast<float>(m.members));
  m.out[i] = sum;
}

__global__ void __launch_bounds__(kBlock) place_logits_kernel(MemberLogits m) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= m.rows * m.classes) return;
  const int64_t row = i / m.classes, c = i % m.classes;
  m.out[(row * m.members + m.member) * m.classes + c] = m.logits[row * m.stride + c];
}

cudaError_t launch(void (*kernel)(MemberLogits), const MemberLogits& m, cudaStream_t stream) {
  const int64_t blocks = (m.rows * m.classes + kBlock - 1) / kBlock;
  if (blocks == 0) return cudaSuccess;
  kernel<<<static_cast<unsigned>(blocks), kBlock, 0, stream>>>(m);
  return cudaGetLastError();
}

}  // namespace

cudaError_t add_logits(const MemberLogits& m, cudaStream_t stream) {
  return launch(add_logits_kernel, m, stream);
}

cudaError_t place_logits(const MemberLogits& m, cudaStream_t stream) {
  return launch(place_logits_kernel, m, stream);
}

}  // namespace fedsmooth
