// What evaluates residual networks on the GPU, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/device_sampler.h"
#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/residual_sampler.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/model/fold.h"
#include "tests/engine/cuda/residual_networks.h"

namespace fedsmooth {

inline constexpr int kRows = 13;  // not a multiple of what a thread block takes

enum class Evaluator {
  kHopper,  // residual_sampler.h
  kRows     // the kernels that train, device_sampler.h
};

inline std::string name_of(Evaluator evaluator) {
  return evaluator == Evaluator::kHopper ? "Hopper" : "Rows";
}

inline BaseClassifier classifier_of(Evaluator evaluator, const Model& model, int batch) {
  const Model folded = fold_batch_norm(model);
  return evaluator == Evaluator::kHopper ? residual_gpu_classifier(folded, batch)
                                         : row_gpu_classifier(folded, Precision::kBfloat16, batch);
}

inline void skip_without(Evaluator evaluator) {
  const std::string missing = gpu_unavailable_reason();
  if (!missing.empty()) GTEST_SKIP() << missing;
  if (evaluator == Evaluator::kHopper && !has_hopper_kernels()) GTEST_SKIP() << "no Hopper";
}

inline Array logits_of(const BaseClassifier& f, const Array& images) { return f.make()(images); }

inline std::vector<double> as_doubles(const Array& a) {
  return {a.floats(), a.floats() + a.count()};
}

}  // namespace fedsmooth
