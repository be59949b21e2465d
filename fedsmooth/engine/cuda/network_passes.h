// Which of the GPU's evaluators counts a network's votes.
#pragma once

#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// Copies that the fastest evaluator of the network evaluates at a time. Here and below the model's
/// batch norms are folded, and missing_for_engine() finds nothing missing for it.
int fastest_batch(const Model& folded);

/// Passes of the fastest evaluator, over batches of `batch` copies.
VotePasses network_passes(const Model& folded, int batch);

}  // namespace fedsmooth
