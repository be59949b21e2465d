// From a model to the base classifier f that is certified.
#pragma once

#include <filesystem>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// What decides how this process rounds on a CPU: vector instructions, BLAS and LibTorch.
std::string cpu_arithmetic();

/// Noisy copies evaluated at a time on the CPU: part of the definition of f. A multiple of the row
/// blocks of all OpenBLAS kernels (up to 24 and 32 rows), which treat a remainder differently.
inline constexpr int64_t kCpuBatch = 192;

/// The network on the CPU in fp32: the fast evaluator where it knows all layers, else LibTorch.
BaseClassifier base_classifier(const Model& model);

/// A TorchScript module on the CPU. One batch of images of shape `input` tells the number of
/// classes.
BaseClassifier base_classifier(const std::filesystem::path& torch_script, const Shape& input);

}  // namespace fedsmooth
