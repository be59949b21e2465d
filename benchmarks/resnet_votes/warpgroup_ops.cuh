// Products of a warpgroup (wgmma), the left factor in registers, the right one in shared memory.
#pragma once

#include <cstdint>

namespace resnet {

/// A right factor [16 channels, 64 pixels] that lies as eight groups of eight pixels, each group
/// two blocks of 128 bytes (eight pixels x eight channels). Unswizzled, so that it may begin at any
/// pixel: a shift of the map is a shift of the address.
inline __device__ uint64_t describe_pixels(uint32_t address, int channel_step, int group_step) {
  return static_cast<uint64_t>(address >> 4 & 0x3FFF) |
         static_cast<uint64_t>(channel_step >> 4) << 16 |
         static_cast<uint64_t>(group_step >> 4) << 32;
}

/// Before the first product that reads registers written otherwise.
inline __device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline __device__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most kLeft groups are under way.
template <int kLeft>
inline __device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

/// What was stored before is seen by products after the next barrier.
inline __device__ void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// sums [64 channels, 64 pixels] += a [64, 16] b [16, 64].
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

}  // namespace resnet
