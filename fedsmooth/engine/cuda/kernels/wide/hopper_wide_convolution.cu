#include "fedsmooth/engine/cuda/kernels/wide/hopper_warpgroups.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"

namespace fedsmooth {

cudaError_t convolve_wide_hopper(const RowConvolution& c, cudaStream_t stream) {
  return wide::launch_convolution<wide::ByWarpgroups>(c, stream);
}

}  // namespace fedsmooth
