#include "fedsmooth/engine/cuda/kernels/residual_votes.h"

#ifdef FEDSMOOTH_HOPPER
#include "fedsmooth/engine/cuda/kernels/hopper_residual.h"
#endif

namespace fedsmooth {

bool has_residual_votes() {
#ifdef FEDSMOOTH_HOPPER
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return major == 9 && minor == 0;
#else
  return false;
#endif
}

cudaError_t count_residual_votes([[maybe_unused]] const ResidualVotes& votes,
                                 [[maybe_unused]] cudaStream_t stream) {
#ifdef FEDSMOOTH_HOPPER
  return count_residual_votes_hopper(votes, stream);
#else
  return cudaErrorNoKernelImageForDevice;
#endif
}

}  // namespace fedsmooth
