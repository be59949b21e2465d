// A network's evaluation with LibTorch's convolutions and fewer passes over their maps. The
// readable twin and oracle is torch_forward().
#pragma once

#include "fedsmooth/engine/torch/torch_forward.h"

namespace fedsmooth {

/// torch_forward() without gradients. Bias, the sum of a residual block and ReLU take one pass
/// where maps lie on the GPU in bfloat16, channels last.
at::Tensor fused_forward(const Network& network, const Tensors& weights, const at::Tensor& images);

}  // namespace fedsmooth
