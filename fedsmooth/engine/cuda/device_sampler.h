// Networks that the GPU engine also trains, as base classifiers whose votes are counted on the GPU.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Number of noisy copies that gpu_classifier() evaluates at a time, which is part of the
/// definition of f. Tiles of 64 copies keep 132 multiprocessors equally busy.
inline constexpr int kGpuBatch = 64 * 132;

/// Returns a model, whose network must be of family kPairs, as a base classifier on the current
/// GPU. It has a sampler of its own.
BaseClassifier gpu_classifier(const Model& model, Precision precision = Precision::kBfloat16);

/// Number of noisy copies that row_gpu_classifier() evaluates at a time. The maps of a ResNet-110
/// are then 4.5 GB.
inline constexpr int kRowBatch = 16 * 132;

/// Returns a model, whose network must be of family kRows, as a base classifier on the current GPU,
/// whose compute capability must be at least 8.0. It has a sampler of its own.
BaseClassifier row_gpu_classifier(const Model& model, Precision precision = Precision::kBfloat16,
                                  int batch = kRowBatch);

/// Returns the passes of gpu_classifier(), over batches of `batch` copies, a multiple of 64.
VotePasses gpu_passes(const Model& model, Precision precision, int batch);
/// Returns the passes of row_gpu_classifier(), over batches of `batch` copies.
VotePasses row_passes(const Model& model, Precision precision, int batch);

}  // namespace fedsmooth
