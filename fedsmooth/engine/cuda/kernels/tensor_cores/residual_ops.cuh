// The instructions of tensor cores and shared memory of which the kernels in stages/ are made.
#pragma once

#include <cstdint>

#include "fedsmooth/engine/cuda/kernels/tensor_cores/hopper_tiles.cuh"

namespace fedsmooth::residual {

/// 16 pixels x 16 channels in bfloat16, in the registers of a left factor of the tensor cores. A
/// packed result of 16 x 16 has the same form, so that a layer can load what the one before stored.
struct Fragment {
  uint32_t v[4];
};

/// Loads a fragment. Each lane gives the address of eight channels of a pixel: lanes 0-15 the lower
/// eight of pixels 0-15, lanes 16-31 the upper eight. Volatile, because memory changes between two
/// loads from one address.
inline __device__ void load_fragment(Fragment& f, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.v[0]), "=r"(f.v[1]), "=r"(f.v[2]), "=r"(f.v[3])
               : "r"(address)
               : "memory");
}

/// Stores a fragment at the addresses from which load_fragment() loads it.
inline __device__ void store_fragment(uint32_t address, const Fragment& f) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(f.v[0]), "r"(f.v[1]), "r"(f.v[2]), "r"(f.v[3])
               : "memory");
}

/// Loads a fragment for sums whose rows are channels: four blocks of 8 channels x 8 pixels. Each
/// lane gives the address of one pixel's cell.
inline __device__ void load_transposed(Fragment& f, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.v[0]), "=r"(f.v[1]), "=r"(f.v[2]), "=r"(f.v[3])
               : "r"(address)
               : "memory");
}

/// Stores a fragment at the addresses from which load_transposed() loads it.
inline __device__ void store_transposed(uint32_t address, const Fragment& f) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(f.v[0]), "r"(f.v[1]), "r"(f.v[2]), "r"(f.v[3])
      : "memory");
}

/// Adds a [16, 16] b [16, 8] to sums [16 pixels, 8 channels]. Not volatile: no order was faster
/// than the compiler's.
inline __device__ void multiply_add(float (&sums)[4], const Fragment& a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
}

/// Rounds two values to bfloat16, after a ReLU if kRelu, and packs them into a word.
template <bool kRelu>
inline __device__ uint32_t pack(float low, float high) {
  uint32_t packed;
  if constexpr (kRelu) {
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  }
  return packed;
}

inline __device__ float low_half(uint32_t packed) { return __uint_as_float(packed << 16); }
inline __device__ float high_half(uint32_t packed) { return __uint_as_float(packed & 0xFFFF0000u); }

/// Loads weights from global memory. Volatile, so that the load stays ahead of the work that hides
/// its latency.
inline __device__ uint4 load_weights(const uint4* p) {
  uint4 w;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(p));
  return w;
}

inline __device__ void copy_16_bytes(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

inline __device__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

inline __device__ void store_zero_16(uint32_t address) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0) : "memory");
}

inline __device__ void store_word(uint32_t address, uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

inline __device__ uint32_t load_word(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

/// Adds a [64, 16] b [16, 64] to d [64 channels, 64 pixels], by a warpgroup (wgmma). The left
/// factor is in registers, the right one in shared memory.
inline __device__ void multiply_add_64x64(float (&d)[32], const uint4& a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b));
}

}  // namespace fedsmooth::residual
