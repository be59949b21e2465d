// The sums of batched_product.h and batched_weights.h on Hopper's tensor cores, in bfloat16. All
// functions but hopper_tiling() require has_hopper_kernels().
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"

namespace fedsmooth {

/// Returns the fastest known tiling for `results` results with `pairs` pairs in all.
Tiling hopper_tiling(Side side, int results, int pairs);

/// Computes multiply_maps() for pairs with a tiling of hopper_tiling().
cudaError_t multiply_maps_hopper(const MapProduct& product, cudaStream_t stream);
/// Computes update_weights() for pairs with a tiling of hopper_tiling().
cudaError_t update_kernel_hopper(const WeightUpdate& update, cudaStream_t stream);

}  // namespace fedsmooth
