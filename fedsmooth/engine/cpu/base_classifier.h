// Makes the base classifier f of a model that is certified on CPU cores.
#pragma once

#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Returns the name of the vector instructions that this process uses, which decide its rounding.
std::string cpu_arithmetic();

/// Noisy copies per evaluation on the CPU. It is part of the definition of f.
inline constexpr int64_t kCpuBatch = 192;

/// Returns the network in fp32, by the fast evaluator if it knows all layers, else by the
/// reference.
BaseClassifier base_classifier(const Model& model);

}  // namespace fedsmooth
