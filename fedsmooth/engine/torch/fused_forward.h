// Evaluates a network by LibTorch's convolutions, with fewer passes over their maps than
// torch_forward(), its plain equivalent and oracle.
#pragma once

#include "fedsmooth/engine/torch/torch_forward.h"

namespace fedsmooth {

/// Returns the logits [rows, classes] of `images`, like torch_forward(), but without gradients.
/// Bias, the sum of a residual block and ReLU are one pass if maps are on the GPU in bfloat16,
/// channels last. Throws a c10::Error if the weights are not the network's, or a stage has a part
/// that is not in kTorchParts.
at::Tensor fused_forward(const Network& network, const Tensors& weights, const at::Tensor& images);

}  // namespace fedsmooth
