// Products of maps with many rows on Hopper, in bfloat16, to the bits of hopper_product.h. A thread
// block keeps 64 rows for all of its results, and two blocks share their reads of the weights.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

namespace fedsmooth {

/// Returns whether multiply_maps_wide() can compute a product: a map after ReLU, without choices,
/// whose rows and columns divide into its tiles and whose tiles fit into shared memory.
bool is_wide(const MapProduct& product);
/// Computes multiply_maps() for a product that is_wide().
cudaError_t multiply_maps_wide(const MapProduct& product, cudaStream_t stream);

}  // namespace fedsmooth
