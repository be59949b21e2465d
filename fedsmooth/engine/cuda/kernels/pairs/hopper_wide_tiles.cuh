// Products of 64 rows with more than 64 columns on Hopper: the tensor cores read a left side from
// shared memory once for all columns.
#pragma once

#include "fedsmooth/engine/cuda/kernels/tensor_cores/hopper_tiles.cuh"

namespace fedsmooth {

// Adds A B to sums, for 64 x 16 and 16 x 128 (or 16 x 192) values; sums[t] has columns 64 t to
// 64 t + 63 in the order of multiply_64x64x16(). The depth of A is along the rows of its tile; B is
// transposed.
inline __device__ void multiply_wide(float (&sums)[2][32], uint64_t a, uint64_t b) {
  multiply_64x128x16<false, true>(sums, a, b);
}
inline __device__ void multiply_wide(float (&sums)[3][32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
      "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,"
      "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,"
      "%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,"
      "%90,%91,%92,%93,%94,%95}, "
      "%96, %97, 1, 1, 1, 0, 1;"
      : FEDSMOOTH_SUMS_32(0), FEDSMOOTH_SUMS_32(1), FEDSMOOTH_SUMS_32(2)
      : "l"(a), "l"(b));
}

}  // namespace fedsmooth
