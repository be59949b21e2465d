// The logits of several networks on the GPU, one network at a time: their mean, or all of them side
// by side.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fedsmooth {

/// Logits of one member, to be joined with those of the members before it.
struct MemberLogits {
  const float* logits = nullptr;  // [row, stride]
  int stride = 0;
  float* out =
      nullptr;  // [row, classes] of add_logits(), [row, members * classes] of place_logits()
  int64_t rows = 0;
  int classes = 0;
  int member = 0, members = 1;  // its number, from 0 on, and how many there are
};

/// Adds in float32, rounded to nearest. The first member's logits replace what is in `out`; with
/// the last one's the sum is divided by the number of members. The bits are those of
/// mean_classifier() on the CPU.
cudaError_t add_logits(const MemberLogits& logits, cudaStream_t stream);

/// Copies the logits to the member's place in each row.
cudaError_t place_logits(const MemberLogits& logits, cudaStream_t stream);

}  // namespace fedsmooth
