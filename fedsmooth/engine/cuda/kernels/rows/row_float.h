// Convolutions of row_convolution.h in float32, as plainly as possible: what tests compare with.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth {

cudaError_t convolve_float_rows(const RowConvolution& c, cudaStream_t stream);
cudaError_t differentiate_float_kernel(const RowGradient& g, cudaStream_t stream);

}  // namespace fedsmooth
