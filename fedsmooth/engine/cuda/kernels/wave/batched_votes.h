// Votes under noise on the GPU. The rows of a batch are noisy copies of images, drawn from the same
// streams as on the CPU, and only counts are copied back. Functions enqueue kernels on the stream
// and return the launch's status; pointers are to device memory.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"

namespace fedsmooth {

/// A request for consecutive copies x + sigma e of one image, by samples of a stream from `sample`
/// on. The copies of all requests form one list.
struct NoisyCopies {
  uint64_t key = 0;
  uint32_t item = 0, client = 0;
  float sigma = 0;
  uint32_t sample = 0;
  int32_t image = 0;  // index in NoisyRows::x
  int64_t first = 0;  // index of its first copy in the list
};

/// The cells of exact noise (smoothing/exact_noise.h).
struct ExactCells {
  static constexpr uint64_t kMargin = 16;  // largest error of an edge, in units of its last bit

  const uint64_t* edges = nullptr;  // [count]; null: noise is drawn in floating point
  const uint64_t* fine = nullptr;   // [count, 2]: high and low half of an edge's 128 bits
  const uint32_t* start = nullptr;  // [1025]: first edge, by the upper 10 bits of a number
  const float* values = nullptr;    // z / 255, from z = -255 reach on
  int32_t count = 0, lowest = 0, reach = 0;
};

/// 64 bits, because a class can get up to 2^32 votes.
using VoteCounter = unsigned long long;

/// A batch of `rows` rows: row r is copy begin + r of the list, or unused if that is not below
/// `total`, the length of the list.
struct NoisyRows {
  const NoisyCopies* copies = nullptr;  // [requests], in the order of the list
  int requests = 0;
  const float* x = nullptr;  // [image, channels, height, width]
  int64_t begin = 0, total = 0;
  int rows = 0;
  int image_size = 0, area = 0;  // number of values in an image and in one channel
  FirstMap map;                  // for make_noisy_input()
  void* out = nullptr;           // for make_noisy_input(): the first map
  ExactCells exact;              // with edges, x must consist of bytes over 255
};
/// Computes x + noise in float32, or clip(x + k / 255) with exact noise k, and writes the
/// normalised copies to the network's first map. Unused rows are zero.
cudaError_t make_noisy_input(Precision precision, const NoisyRows& rows, cudaStream_t stream);
/// Writes the copies to `out` [row, channels, height, width]. Unused rows are left as they are.
cudaError_t make_noisy_images(const NoisyRows& rows, float* out, cudaStream_t stream);

/// Arguments of count_votes().
struct VoteCount {
  NoisyRows rows;
  const float* logits = nullptr;  // [row, stride]
  int classes = 0, stride = 0;
  VoteCounter* counts = nullptr;  // [requests, classes]
};
/// Adds each used row's vote to the counts: for the class with the largest logit, the lowest class
/// on ties, and for no class if a logit is not finite.
cudaError_t count_votes(const VoteCount& count, cudaStream_t stream);

/// The same for the majority of several networks, see smoothing/group_votes.h: each row adds the
/// vote of the majority to counts [requests, classes] and, unless `gaps` is null, the gap of its
/// request's class gaps_of [requests] to gaps [requests, groups + 2], whose last entry is of gaps
/// below 0.
struct GroupVoteCount {
  NoisyRows rows;
  const float* logits = nullptr;  // [row, groups, classes]
  int classes = 0, groups = 0;
  VoteCounter* counts = nullptr;
  const int32_t* gaps_of = nullptr;
  VoteCounter* gaps = nullptr;
};
cudaError_t count_group_votes(const GroupVoteCount& count, cudaStream_t stream);

}  // namespace fedsmooth
