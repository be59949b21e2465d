// Instructions for a matrix product on tensor cores: asynchronous copies into shared memory,
// fragments of 16-bit matrices, and products of 16x16 by 16x8 by a warp.
#pragma once

#include <cstdint>

namespace fedsmooth {

constexpr int kRows = 64, kColumns = 64;  // of a tile
constexpr int kPad = 8;                   // values between rows, against bank conflicts

inline __device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Starts a copy of sixteen bytes to shared memory; zeros if not `real`.
inline __device__ void copy_async(void* to, const void* from, bool real) {
  const int bytes = real ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes));
}
inline __device__ void commit_copies() { asm volatile("cp.async.commit_group;\n"); }
// Waits until at most kLeft committed groups of this thread's copies are unfinished.
template <int kLeft>
inline __device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft));
}

// Loads four 8x8 matrices for mma_16816(). Each lane gives the address of one row.
template <bool kTransposed>
inline __device__ void load_matrices(uint32_t (&out)[4], uint32_t address) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address));
  }
}

// Adds to sum [16, 8] the product of a [16, 16] and b [16, 8], in bfloat16 with sums in float32.
inline __device__ void mma_16816(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                 uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace fedsmooth
