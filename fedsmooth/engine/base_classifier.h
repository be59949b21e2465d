// From a model to the base classifier f that is certified.
#pragma once

#include <filesystem>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Noisy copies evaluated at a time on the CPU: part of the definition of f.
inline constexpr int64_t kCpuBatch = 128;

/// The network on the CPU in fp32: the fast evaluator where it knows all layers, else LibTorch.
BaseClassifier base_classifier(const Model& model);

/// A TorchScript module on the CPU. One batch of images of shape `input` tells the number of
/// classes.
BaseClassifier base_classifier(const std::filesystem::path& torch_script, const Shape& input);

}  // namespace fedsmooth
