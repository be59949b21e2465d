// Convolutions of row maps (row_maps.h) with many channels or large kernels, and their gradients,
// in bfloat16. They take any kernel, and channels that are a multiple of 16.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth {

/// convolve_rows() by these kernels: warpgroup products on Hopper, else the portable ones.
cudaError_t convolve_wide(const RowConvolution& c, cudaStream_t stream);
cudaError_t convolve_wide_portable(const RowConvolution& c, cudaStream_t stream);
cudaError_t convolve_wide_hopper(const RowConvolution& c, cudaStream_t stream);
/// Returns the number of parts in RowConvolution::sums.
int wide_convolution_parts(const RowConvolution& c);

/// differentiate_kernel() by these kernels. The gradient is in one piece.
cudaError_t differentiate_wide(const RowGradient& g, cudaStream_t stream);
cudaError_t differentiate_wide_portable(const RowGradient& g, cudaStream_t stream);
cudaError_t differentiate_wide_hopper(const RowGradient& g, cudaStream_t stream);
/// Returns the number of values in RowGradient::room.
int64_t wide_gradient_room(const RowConvolution& forward);

}  // namespace fedsmooth
