// The ingredients of a client's step: its streams, a minibatch, the noises. Objectives that make
// their own examples receive a LocalStep.
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

/// Local iteration i of a client; i also numbers its streams. References must outlive it.
struct LocalStep {
  const LocalTask& task;
  Passes& passes;  // loaded with the current weights theta
  Streams streams;
  int64_t i = 0;
  Telemetry& telemetry;
  int64_t t = 0;  // the round

  int64_t first() const { return task.first_step(t); }  // the round's first iteration
};

/// Returns the offsets that calibration adds to the logits of client `k`, see calibrate.h. A client
/// that flips labels counts the flipped ones.
std::vector<float> label_offsets(const LocalTask& task, int64_t k,
                                 const std::vector<int64_t>& images);

/// Returns these images with their labels, as the stream's client sees them (see flips_labels()),
/// and randomly cropped and flipped if the task augments.
Batch load_batch(const LocalTask& task, const std::vector<int64_t>& images, Stream stream);

/// Returns noises delta ~ sigma N(0, I) as [B, m, C, H, W]: copy i of image j is sample j m + i.
Array draw_noise(const Array& x, int64_t m, double sigma, Stream stream);

}  // namespace fedsmooth
