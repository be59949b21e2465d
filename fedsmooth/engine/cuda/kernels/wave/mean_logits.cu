#include "fedsmooth/engine/cuda/kernels/wave/mean_logits.h"

namespace fedsmooth {
namespace {

constexpr int kBlock = 256;

__global__ void __launch_bounds__(kBlock) add_logits_kernel(LogitSum s) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.rows * s.classes) return;
  const int64_t row = i / s.classes;
  const float logit = s.logits[row * s.stride + i % s.classes];
  float sum = s.member == 0 ? logit : __fadd_rn(s.sum[i], logit);
  if (s.member == s.members - 1) sum = __fdiv_rn(sum, static_cast<float>(s.members));
  s.sum[i] = sum;
}

}  // namespace

cudaError_t add_logits(const LogitSum& s, cudaStream_t stream) {
  const int64_t blocks = (s.rows * s.classes + kBlock - 1) / kBlock;
  if (blocks == 0) return cudaSuccess;
  add_logits_kernel<<<static_cast<unsigned>(blocks), kBlock, 0, stream>>>(s);
  return cudaGetLastError();
}

}  // namespace fedsmooth
