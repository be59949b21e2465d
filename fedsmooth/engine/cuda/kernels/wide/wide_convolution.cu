#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"

#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.cuh"

namespace fedsmooth {
namespace {

bool runs_on_hopper(const RowConvolution& c) { return !c.portable && has_hopper_kernels(); }

}  // namespace

cudaError_t convolve_wide(const RowConvolution& c, cudaStream_t stream) {
  return runs_on_hopper(c) ? convolve_wide_hopper(c, stream)
                           : wide::launch_convolution<wide::ByWarps>(c, stream);
}

int wide_convolution_parts(const RowConvolution& c) {
  return runs_on_hopper(c) && wide::has_lines(c) ? wide::LinesCut(c).tiles
                                                 : wide::cut_wide(c).tiles;
}

}  // namespace fedsmooth
