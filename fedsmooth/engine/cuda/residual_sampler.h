// Residual networks as base classifiers whose votes are counted on the GPU by residual_votes.h.
#pragma once

#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Number of noisy copies that are evaluated at a time: a multiple of the copies that each stage's
/// thread blocks compute at once on 132 multiprocessors (396, 792 and 1056).
inline constexpr int kResidualBatch = 132 * 72;

/// Returns a model, whose network residual_refusal() must not refuse, as a base classifier on the
/// current GPU, for which has_hopper_kernels() must be true.
BaseClassifier residual_gpu_classifier(const Model& folded, int batch = kResidualBatch);

/// Returns the passes of residual_gpu_classifier(), over batches of `batch` copies.
VotePasses residual_vote_passes(const Model& folded, int batch);

}  // namespace fedsmooth
