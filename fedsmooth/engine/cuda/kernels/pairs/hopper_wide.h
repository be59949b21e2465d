// Products of maps with many rows on Hopper, in bfloat16: to the bit those of hopper_product.h, by
// blocks that keep 64 rows for all of their results and read the weights two by two.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

namespace fedsmooth {

/// Whether it computes such a product: maps after ReLU, without choices.
bool is_wide(const MapProduct& product);
/// For those alone.
cudaError_t multiply_maps_wide(const MapProduct& product, cudaStream_t stream);

}  // namespace fedsmooth
