// The rate of mma.sync m16n8k16 alone, on random-like bits, by warps of a multiprocessor.
#include <cstdio>

#include "tensor_ops.cuh"

template <int kChains>
__global__ void products(float* out, int rounds, uint32_t seed) {
  resnet::Fragment a[2];
  uint32_t b[4];
  float sums[kChains][4] = {};
  for (int i = 0; i < 4; ++i) {
    // bf16 pairs of moderate size with busy mantissas
    a[0].v[i] = (seed * (threadIdx.x * 7 + i + 1) & 0x807F807F) | 0x3F003F00;
    a[1].v[i] = (seed * (threadIdx.x * 5 + i + 3) & 0x807F807F) | 0x3F003F00;
    b[i] = (seed * (threadIdx.x * 3 + i + 5) & 0x807F807F) | 0x3C003C00;
  }
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) {
      resnet::multiply_add(sums[i], a[i % 2], b[i % 2 * 2], b[i % 2 * 2 + 1]);
    }
  }
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += sums[i][0] + sums[i][3];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int kChains>
void time_products(int warps) {
  float* out;
  cudaMalloc(&out, 132 * 1024 * 4);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  const int rounds = 200000 / kChains / warps * 8;
  for (int i = 0; i < 3; ++i) {
    cudaEventRecord(begin);
    products<kChains><<<132, warps * 32>>>(out, rounds, 2654435761u);
    cudaEventRecord(end);
  }
  cudaEventSynchronize(end);
  float ms;
  cudaEventElapsedTime(&ms, begin, end);
  printf("mma.sync: %d warps, %d chains: %.0f TFLOP/s (%s)\n", warps, kChains,
         4096.0 * 132 * warps * kChains * rounds / ms * 1e-9,
         cudaGetErrorString(cudaGetLastError()));
}

int main() {
  time_products<6>(4);
  time_products<12>(4);
  time_products<6>(8);
  time_products<12>(8);
  time_products<6>(12);
  time_products<6>(16);
}
