// What a client's step is made of: its streams, a minibatch, the noises. Objectives that list
// examples of their own see a LocalStep.
#pragma once

#include "fedsmooth/federated/client.h"

namespace fedsmooth {

/// The streams of one client in one round.
struct Streams {
  uint64_t seed;
  int64_t round, client;

  Stream of(Purpose purpose, int64_t item) const {
    return {make_key(seed, purpose, static_cast<uint64_t>(round)), static_cast<uint32_t>(item),
            static_cast<uint32_t>(client)};
  }
};

/// Local iteration i of a client, by which its streams are numbered. What is referred to outlives
/// it.
struct LocalStep {
  const LocalTask& task;
  Passes& passes;  // of theta
  Streams streams;
  int64_t i = 0;
  Telemetry& telemetry;
  int64_t t = 0;  // the round

  int64_t first() const { return task.first_step(t); }  // iteration of the round
};

/// What is added to the logits of client `k` if they are calibrated: see calibrate.h. One that
/// flips labels counts them as it sees them.
std::vector<float> label_offsets(const LocalTask& task, int64_t k,
                                 const std::vector<int64_t>& images);

/// The images of these numbers with the labels of the stream's client, cropped and flipped if the
/// task asks for it.
Batch load_batch(const LocalTask& task, const std::vector<int64_t>& images, Stream stream);

/// Noises delta ~ sigma N(0, I) as [B, m, C, H, W]: copy i of image j is sample j m + i.
Array draw_noise(const Array& x, int64_t m, double sigma, Stream stream);

}  // namespace fedsmooth
