// Chooses the fastest of the GPU's evaluators to count a network's votes. Models must have their
// batch norms folded, and missing_for_engine() must find nothing missing for them.
#pragma once

#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// Returns the number of noisy copies that the network's fastest evaluator evaluates at a time.
int fastest_batch(const Model& folded);

/// Returns the passes of the network's fastest evaluator, over batches of `batch` copies.
VotePasses network_passes(const Model& folded, int batch);

}  // namespace fedsmooth
