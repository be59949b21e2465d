// Hopper's instructions for a matrix product: bulk copies of tiles into shared memory, which signal
// a barrier there, and products of a warpgroup (128 threads) of tiles in shared memory.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

#include "fedsmooth/engine/cuda/kernels/tensor_cores/matrix_tiles.cuh"

namespace fedsmooth {

// A barrier in shared memory. A phase of it ends when all arrivals and all bytes that were
// announced to it have come; the parity of phases alternates.
inline __device__ void init_barrier(uint32_t barrier, int arrivals = 1) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
inline __device__ void show_barriers_to_copies() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
inline __device__ void expect_bytes(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
inline __device__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}
inline __device__ void wait_for_phase(uint32_t barrier, int phase) {
  asm volatile(
      "{\n"
      ".reg .pred open;\n"
      "again: mbarrier.try_wait.parity.shared.b64 open, [%0], %1;\n"
      "@!open bra again;\n"
      "}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}

// Copies the box of a tensor that starts at the given coordinates, and signals the barrier. Values
// beyond the tensor are zero.
inline __device__ void copy_box(uint32_t to, const CUtensorMap& from, uint32_t barrier, int x,
                                int y, int z, int client) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(&from), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(client)
      : "memory");
}

// Multicast variant: copies the box to the same shared-memory offset in every block of the cluster,
// and signals each block's barrier.
inline __device__ void copy_box_to_all(uint32_t to, const CUtensorMap& from, uint32_t barrier,
                                       int x, int y, int z, int client, int blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
      "l"(&from), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(client),
      "h"(static_cast<uint16_t>((1 << blocks) - 1))
      : "memory");
}

// Returns the rank of this block in its cluster.
inline __device__ int rank_in_cluster() {
  uint32_t rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
inline __device__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
// Returns the address of the same shared-memory offset in another block of the cluster.
inline __device__ uint32_t address_in_peer(uint32_t address, int rank) {
  uint32_t theirs = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(address), "r"(rank));
  return theirs;
}
// Arrives at a barrier of another block, without a fence for all of memory. That suffices if only
// products have read what will be overwritten, and this thread has waited for them.
inline __device__ void show_read(uint32_t barrier_in_peer) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier_in_peer) : "memory");
}

// Describes a tile in shared memory as a side of a product. Its rows have kRowBytes, swizzled by
// the bulk copies. Steps along the tile are added to the low bits, in units of 16 bytes. A
// transposed side of more than 64 columns consists of tiles [depth, 64], `next` bytes apart.
template <int kRowBytes>
inline __device__ uint64_t describe_tile(uint32_t address, int next = 16) {
  static_assert(kRowBytes == 128 || kRowBytes == 64);
  constexpr uint64_t kSwizzle = kRowBytes == 128 ? 1 : 2;
  constexpr uint64_t kEightRows = 8 * kRowBytes / 16;
  return (address & 0x3FFFF) / 16 | static_cast<uint64_t>(next / 16) << 16 | kEightRows << 32 |
         kSwizzle << 62;
}

// Describes a side [16 channels, 64 pixels] that consists of eight groups of eight pixels, each
// group of two blocks of 128 bytes (eight pixels x eight channels). It is not swizzled, so that it
// may begin at any pixel: a shift of the map is a shift of the address.
inline __device__ uint64_t describe_pixels(uint32_t address, int channel_step, int group_step) {
  return static_cast<uint64_t>(address >> 4 & 0x3FFF) |
         static_cast<uint64_t>(channel_step >> 4) << 16 |
         static_cast<uint64_t>(group_step >> 4) << 32;
}

// Makes earlier stores of this thread visible to products after the next barrier.
inline __device__ void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Must be called on every path to a product; where a call is missing, the compiler adds waits.
inline __device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline __device__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kLeft committed groups of products are unfinished.
template <int kLeft>
inline __device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
inline __device__ void finish_products() {
  begin_products();
  commit_products();
  wait_for_products<0>();
}

// Adds A B to sums, for 64 x 16 and 16 x 64 values of bfloat16. The depth of a side is along the
// rows of its tile or, if transposed, across them. Lane l of warp w has rows 16 w + l / 4 (+ 8) and
// columns 8 n + l % 4 * 2 (+ 1) in sums[4 n] to sums[4 n + 3].
template <bool kTransposeA, bool kTransposeB>
inline __device__ void multiply_64x64x16(float (&sums)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
      "%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, %34, %35;"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]),
        "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]),
        "+f"(sums[22]), "+f"(sums[23]), "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]),
        "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31])
      : "l"(a), "l"(b), "n"(kTransposeA), "n"(kTransposeB));
}

#define FEDSMOOTH_SUMS_8(t, i)                                                        \
  "+f"(sums[t][i]), "+f"(sums[t][i + 1]), "+f"(sums[t][i + 2]), "+f"(sums[t][i + 3]), \
      "+f"(sums[t][i + 4]), "+f"(sums[t][i + 5]), "+f"(sums[t][i + 6]), "+f"(sums[t][i + 7])
#define FEDSMOOTH_SUMS_32(t) \
  FEDSMOOTH_SUMS_8(t, 0), FEDSMOOTH_SUMS_8(t, 8), FEDSMOOTH_SUMS_8(t, 16), FEDSMOOTH_SUMS_8(t, 24)

// Adds A B to sums, for 64 x 16 and 16 x 128 values, as multiply_64x64x16() does for 64 columns:
// sums[t] has columns 64 t to 64 t + 63. The tensor cores read A from shared memory once for all.
template <bool kTransposeA, bool kTransposeB>
inline __device__ void multiply_64x128x16(float (&sums)[2][32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
      "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,"
      "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "%64, %65, 1, 1, 1, %66, %67;"
      : FEDSMOOTH_SUMS_32(0), FEDSMOOTH_SUMS_32(1)
      : "l"(a), "l"(b), "n"(kTransposeA), "n"(kTransposeB));
}

// Returns the larger values of two pairs of bfloat16; NaN wins.
inline __device__ uint32_t larger(uint32_t a, uint32_t b) {
  const __nv_bfloat162 most = __hmax2_nan(reinterpret_cast<const __nv_bfloat162&>(a),
                                          reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const uint32_t&>(most);
}

// A barrier among the 128 threads of a warpgroup.
inline __device__ void sync_warpgroup(int warpgroup) {
  asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
}

// Returns the first lane's value. The compiler then knows that it is the same for the whole warp;
// otherwise it would wait for each product of a loop.
inline __device__ int uniform(int value) { return __shfl_sync(~0u, value, 0); }

}  // namespace fedsmooth
