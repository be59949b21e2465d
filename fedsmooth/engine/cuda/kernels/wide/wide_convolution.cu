#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"

#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.cuh"

namespace fedsmooth {

cudaError_t convolve_wide_portable(const RowConvolution& c, cudaStream_t stream) {
  return wide::launch_convolution<wide::ByWarps>(c, stream);
}

cudaError_t convolve_wide(const RowConvolution& c, cudaStream_t stream) {
  return has_hopper_kernels() ? convolve_wide_hopper(c, stream) : convolve_wide_portable(c, stream);
}

int wide_convolution_parts(const RowConvolution& c) { return wide::cut_wide(c).tiles; }

}  // namespace fedsmooth
