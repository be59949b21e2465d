// Answers of the smoothed network during training: its accuracy after a round, and whether it gives
// one answer for every image, which a loss just below that of guessing does not reveal.
#pragma once

#include <optional>
#include <string>

#include "fedsmooth/data/dataset.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth::jobs {

/// The device and the threads that count the votes, and the seed of their noise.
struct NoisyVotes {
  std::string device;
  int threads = 1;
  uint64_t seed = 0;
};

/// Returns the share of up to 200 images for which the label gets the most votes of 128 noisy
/// copies.
double noisy_accuracy(const Model& model, const Dataset& data, const NoisyVotes& votes);

/// Returns the class that gets the most votes of 32 noisy copies, with noise `sigma`, if it is the
/// same for all of up to 100 images. None if it is not, or if these images have one label.
std::optional<int64_t> only_answer(const Model& model, double sigma, const Dataset& data,
                                   const NoisyVotes& votes);

}  // namespace fedsmooth::jobs
