// The mean of several networks' logits on the GPU, one network at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fedsmooth {

/// Arguments of add_logits(): the logits of one member. Pointers are to device memory.
struct LogitSum {
  const float* logits = nullptr;  // [row, stride]
  int stride = 0;
  float* sum = nullptr;  // [row, classes]
  int64_t rows = 0;
  int classes = 0;
  int member = 0, members = 1;  // index of the member, number of members
};

/// Adds a member's logits to `sum`, in float32, rounded to nearest. The first member's logits
/// replace the content of `sum`; after adding the last one's, the sum is divided by the number of
/// members. The bits are those of mean_classifier() on the CPU. Enqueues on the stream and returns
/// the launch's status.
cudaError_t add_logits(const LogitSum& sum, cudaStream_t stream);

}  // namespace fedsmooth
