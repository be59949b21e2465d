// Convolutions of row maps (row_maps.h) with many channels or large kernels, and the gradients of
// their kernels, in bfloat16. Kernels have at most 16x16 taps, and channels are a multiple of 16.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth {

/// Computes convolve_rows(): by convolve_wide_hopper() on Hopper, unless `portable` is set, else
/// with products by warps.
cudaError_t convolve_wide(const RowConvolution& c, cudaStream_t stream);
cudaError_t convolve_wide_hopper(const RowConvolution& c, cudaStream_t stream);
/// Returns the number of parts in RowConvolution::sums that convolve_wide() writes.
int wide_convolution_parts(const RowConvolution& c);

/// Computes differentiate_kernel(), in one piece, with products by warpgroups or warps like
/// convolve_wide().
cudaError_t differentiate_wide(const RowGradient& g, cudaStream_t stream);
cudaError_t differentiate_wide_hopper(const RowGradient& g, cudaStream_t stream);
/// Returns the number of values in RowGradient::room, for all clients.
int64_t wide_gradient_room(const RowConvolution& forward);

}  // namespace fedsmooth
