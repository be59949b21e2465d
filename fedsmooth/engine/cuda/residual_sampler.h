// A residual network on the GPU as a base classifier, and its votes counted there.
#pragma once

#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Noisy copies evaluated at a time: whole waves of every stage's thread blocks on 132
/// multiprocessors (396, 792 and 1056 copies).
inline constexpr int kResidualBatch = 132 * 72;

/// For models that plan_residual() takes, on GPUs for which has_hopper_kernels() is true.
BaseClassifier residual_gpu_classifier(const Model& folded, int batch = kResidualBatch);

/// The passes of residual_gpu_classifier().
VotePasses residual_vote_passes(const Model& folded, int batch);

}  // namespace fedsmooth
