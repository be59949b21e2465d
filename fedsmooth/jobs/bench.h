// Measures the throughput of certification and training with this build on this machine.
#pragma once

#include <nlohmann/json.hpp>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth::jobs {

/// Number of repetitions, of which the median is reported.
inline constexpr int kBenchRepeats = 5;

/// Measures votes per second for an untrained network on images [3, 32, 32]. The time does not
/// depend on the weights.
nlohmann::json bench_certify(const Experiment& experiment, const Context& context);

/// Measures seconds per client and local step, by kBenchRepeats rounds on random images [3, 32, 32]
/// of 10 classes. A round has the experiment's clients on a GPU, at most two per thread on a CPU.
nlohmann::json bench_train(const Experiment& experiment, const Context& context);
/// Measures seconds per client and local step, by `repeats` rounds on random images of this kind. A
/// round has the experiment's clients on a GPU, at most two per thread on a CPU.
nlohmann::json time_rounds(const Experiment& experiment, const Context& context, int repeats,
                           const ImageKind& kind);

}  // namespace fedsmooth::jobs
