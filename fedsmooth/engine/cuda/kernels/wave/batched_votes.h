// Votes under noise on the GPU: the rows of a batch are noisy copies of images, drawn from the same
// streams as on the CPU, and only counts come back.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"

namespace fedsmooth {

/// Copies x + sigma e of one image, for samples of a stream from `sample` on. All that are asked
/// for form one list of copies, whatever images they are of.
struct NoisyCopies {
  uint64_t key = 0;
  uint32_t item = 0, client = 0;
  float sigma = 0;
  uint32_t sample = 0;
  int32_t image = 0;  // number in x
  int64_t first = 0;  // index of the first one in the list
};

/// The cells of exact noise (smoothing/exact_noise.h) on the device.
struct ExactCells {
  static constexpr uint64_t kMargin = 16;  // by which an edge may be off, in its last bits

  const uint64_t* edges = nullptr;  // [count]; null: noise is drawn in floating point
  const uint64_t* fine = nullptr;   // [count, 2]: high and low half of an edge's 128 bits
  const uint32_t* start = nullptr;  // [1025], by the upper 10 bits
  const float* values = nullptr;    // z / 255 from z = -255 reach on
  int32_t count = 0, lowest = 0, reach = 0;
};

/// A class can get up to 2^32 votes.
using VoteCounter = unsigned long long;

/// Rows 0 .. rows-1 of a map are the copies from `begin` on, of `total` altogether.
struct NoisyRows {
  const NoisyCopies* copies = nullptr;  // [requests], in the order of the list
  int requests = 0;
  const float* x = nullptr;  // [image, channels, height, width]
  int64_t begin = 0, total = 0;
  int rows = 0;
  int image_size = 0, area = 0;  // values of an image and of one channel
  FirstMap map;                  // and where make_noisy_input() writes it
  void* out = nullptr;
  ExactCells exact;  // x then consists of bytes over 255
};
/// Forms x + noise in float32, or clip(x + k / 255) with exact noise k, and writes the network's
/// input map.
cudaError_t make_noisy_input(Precision precision, const NoisyRows& rows, cudaStream_t stream);
/// The copies themselves, [row, channels, height, width].
cudaError_t make_noisy_images(const NoisyRows& rows, float* out, cudaStream_t stream);

/// Adds each row's vote to counts [requests, classes]: for the largest logit, the lowest class on
/// ties, nobody if a logit is not finite.
struct VoteCount {
  NoisyRows rows;
  const float* logits = nullptr;  // [row, stride]
  int classes = 0, stride = 0;
  VoteCounter* counts = nullptr;
};
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
