// The launches of first_layer.h.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"

namespace fedsmooth {

cudaError_t make_first_layer_hopper(const FirstLayerRows& layer, cudaStream_t stream);
cudaError_t make_first_layer_hopper(const FirstLayerWave& layer, cudaStream_t stream);

}  // namespace fedsmooth
