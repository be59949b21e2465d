// The launches of residual_votes.h.
#pragma once

#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"

namespace fedsmooth {

cudaError_t count_residual_votes_hopper(const ResidualVotes& votes, cudaStream_t stream);

}  // namespace fedsmooth
