// From a model to the base classifier f that is certified on CPU cores.
#pragma once

#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// What decides how this process rounds on a CPU: its vector instructions.
std::string cpu_arithmetic();

/// Noisy copies evaluated at a time on the CPU: part of the definition of f.
inline constexpr int64_t kCpuBatch = 192;

/// The network in fp32: the fast evaluator where it knows all layers, else the reference.
BaseClassifier base_classifier(const Model& model);

}  // namespace fedsmooth
