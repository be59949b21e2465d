#include "fedsmooth/engine/cuda/network_passes.h"

#include "fedsmooth/engine/cuda/device_sampler.h"
#include "fedsmooth/engine/cuda/graph.h"
#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/residual_plan.h"
#include "fedsmooth/engine/cuda/residual_sampler.h"

namespace fedsmooth {
namespace {

bool runs_as_pairs(const Network& network) {
  return graph_refusal(network, Family::kPairs).empty();
}

bool runs_in_stages(const Network& network) {
  return has_hopper_kernels() && residual_refusal(network).empty();
}

}  // namespace

int fastest_batch(const Model& folded) {
  if (runs_as_pairs(folded.network)) return kGpuBatch;
  return runs_in_stages(folded.network) ? kResidualBatch : kRowBatch;
}

VotePasses network_passes(const Model& folded, int batch) {
  if (runs_as_pairs(folded.network)) {
    return gpu_passes(folded, Precision::kBfloat16, batch);
  }
  if (runs_in_stages(folded.network)) return residual_vote_passes(folded, batch);
  return row_passes(folded, Precision::kBfloat16, batch);
}

}  // namespace fedsmooth
