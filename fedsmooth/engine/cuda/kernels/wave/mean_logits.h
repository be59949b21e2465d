// The mean of several networks' logits on the GPU, one network at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fedsmooth {

/// Logits of one member, to be added to those of the members before it.
struct LogitSum {
  const float* logits = nullptr;  // [row, stride]
  int stride = 0;
  float* sum = nullptr;  // [row, classes]
  int64_t rows = 0;
  int classes = 0;
  int member = 0, members = 1;  // its number, from 0 on, and how many there are
};

/// Adds in float32, rounded to nearest. The first member's logits replace what is in `sum`; with
/// the last one's the sum is divided by the number of members. The bits are those of
/// mean_classifier() on the CPU.
cudaError_t add_logits(const LogitSum& sum, cudaStream_t stream);

}  // namespace fedsmooth
