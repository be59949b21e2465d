// The logits of several networks on the GPU, one network at a time: their mean, or all of them side
// by side.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fedsmooth {

/// Arguments of add_logits() and place_logits(): the logits of one member. Pointers are to device
/// memory.
struct MemberLogits {
  const float* logits = nullptr;  // [row, stride]
  int stride = 0;
  float* out = nullptr;  // [row, classes]; of place_logits() [row, members * classes]
  int64_t rows = 0;
  int classes = 0;
  int member = 0, members = 1;  // index of the member, number of members
};

/// Adds a member's logits to `out`, in float32, rounded to nearest. The first member's logits
/// replace the content of `out`; after adding the last one's, the sum is divided by the number of
/// members. The bits are those of mean_classifier() on the CPU. Enqueues on the stream and returns
/// the launch's status.
cudaError_t add_logits(const MemberLogits& logits, cudaStream_t stream);

/// Copies a member's logits to its place in each row. Enqueues on the stream and returns the
/// launch's status.
cudaError_t place_logits(const MemberLogits& logits, cudaStream_t stream);

}  // namespace fedsmooth
