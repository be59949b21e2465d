// The sums of batched_product.h and batched_weights.h on Hopper's tensor cores, in bfloat16.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"

namespace fedsmooth {

Tiling hopper_tiling(Side side, int results, int pairs);

/// For pairs with a tiling of the above.
cudaError_t multiply_maps_hopper(const MapProduct& product, cudaStream_t stream);
cudaError_t update_kernel_hopper(const WeightUpdate& update, cudaStream_t stream);

}  // namespace fedsmooth
