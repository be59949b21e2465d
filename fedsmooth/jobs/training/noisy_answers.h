// What the smoothed network of a training answers: its accuracy after a round, and whether it ended
// with one answer for every image, which can have a loss just below that of guessing.
#pragma once

#include <optional>
#include <string>

#include "fedsmooth/data/dataset.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth::jobs {

/// Who counts the votes, and which are drawn.
struct NoisyVotes {
  std::string device;
  int threads = 1;
  uint64_t seed = 0;
};

/// Share of up to 200 images for which most of 128 noisy copies are answered by the label.
double noisy_accuracy(const Model& model, const Dataset& data, const NoisyVotes& votes);

/// The class that most of 32 noisy copies get, if it is one for each of up to 100 images. None if
/// there are several, or if these images have one label. `sigma` is that of the copies.
std::optional<int64_t> only_answer(const Model& model, double sigma, const Dataset& data,
                                   const NoisyVotes& votes);

}  // namespace fedsmooth::jobs
