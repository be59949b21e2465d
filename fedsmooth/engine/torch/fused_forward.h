// A network's evaluation with LibTorch's convolutions and fewer passes over their maps. The
// readable twin and oracle is forward() in model/network.h.
#pragma once

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// forward() without gradients. Bias, the sum of a residual block and ReLU take one pass where maps
/// lie on the GPU in bfloat16, channels last.
Tensor fused_forward(const Network& network, const Weights& weights, const Tensor& images);

}  // namespace fedsmooth
