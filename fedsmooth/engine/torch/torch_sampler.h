// Networks and modules that only LibTorch can run, on the GPU: it needs one built for CUDA.
#pragma once

#include "fedsmooth/engine/torch/tensors.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

// Both choose their batch by largest_steady_batch().

/// The network in bfloat16, channels last.
BaseClassifier torch_gpu_classifier(const Model& model);

/// A function of images on the GPU, in float32, such as a TorchScript module for images of
/// shape `input`.
BaseClassifier torch_gpu_classifier(const TensorFunction& on_gpu, int64_t classes,
                                    const Shape& input);

}  // namespace fedsmooth
