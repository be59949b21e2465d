#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"

#ifdef FEDSMOOTH_HOPPER
#include "fedsmooth/engine/cuda/kernels/stages/hopper_residual.h"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#endif

namespace fedsmooth {

bool has_residual_votes() {
#ifdef FEDSMOOTH_HOPPER
  return is_hopper();
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
