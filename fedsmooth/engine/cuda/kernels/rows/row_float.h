// The convolutions of row_convolution.h in float32, in plain loops. Tests compare others with them.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth {

/// Computes convolve_rows() in float32.
cudaError_t convolve_float_rows(const RowConvolution& c, cudaStream_t stream);
/// Computes differentiate_kernel() in float32.
cudaError_t differentiate_float_kernel(const RowGradient& g, cudaStream_t stream);

}  // namespace fedsmooth
