// Throughput of this build on this machine.
#pragma once

#include <nlohmann/json.hpp>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth::jobs {

/// Of which the median counts.
inline constexpr int kBenchRepeats = 5;

/// Votes per second for an untrained network: the time does not depend on the weights.
nlohmann::json bench_certify(const Experiment& experiment, const Context& context);

/// Seconds per client and local step: on a GPU of whole rounds, on the CPU of rounds with a few
/// clients for each thread.
nlohmann::json bench_train(const Experiment& experiment, const Context& context);
/// As bench_train(), from `repeats` rounds on images of this kind.
nlohmann::json time_rounds(const Experiment& experiment, const Context& context, int repeats,
                           const ImageKind& kind);

}  // namespace fedsmooth::jobs
