#include "fedsmooth/engine/cuda/kernels/wide/hopper_warpgroups.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_gradient.cuh"

namespace fedsmooth {

cudaError_t differentiate_wide_hopper(const RowGradient& g, cudaStream_t stream) {
  return wide::launch_gradient<wide::ByWarpgroups>(g, stream);
}

}  // namespace fedsmooth
