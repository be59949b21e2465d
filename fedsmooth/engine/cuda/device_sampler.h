// A network on the GPU as a base classifier, and its votes counted there.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Noisy copies evaluated at a time on the GPU: part of the definition of f. Its tiles of 64 keep
/// 132 multiprocessors equally busy.
inline constexpr int kGpuBatch = 64 * 132;

/// For networks of family kPairs. It brings a sampler of its own.
BaseClassifier gpu_classifier(const Model& model, Precision precision = Precision::kBfloat16);

/// Copies evaluated at a time by the kernels that train residual networks: of a ResNet-110 their
/// maps take 4.5 GB.
inline constexpr int kRowBatch = 16 * 132;

/// For networks of family kRows, on GPUs from compute capability 8.0 on.
BaseClassifier row_gpu_classifier(const Model& model, Precision precision = Precision::kBfloat16,
                                  int batch = kRowBatch);

/// Passes of a network that gpu_classifier() accepts, over batches of another size than its own.
VotePasses gpu_passes(const Model& model, Precision precision, int batch);
/// Passes of a network that row_gpu_classifier() accepts.
VotePasses row_passes(const Model& model, Precision precision, int batch);

}  // namespace fedsmooth
