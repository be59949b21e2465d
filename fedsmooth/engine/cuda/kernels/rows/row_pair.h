// Two consecutive convolutions of row maps (row_maps.h) in one kernel, with the map between them in
// shared memory.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth {

/// Two convolutions, the second of the first one's output. second.x is not read.
struct RowPair {
  RowConvolution first, second;
};

/// Returns whether convolve_pair() can compute them: they must have 3x3 kernels on 16 channels of
/// 32x32 pixels, 32 of 16x16 or 64 of 8x8, and no sums.
bool can_pair(const RowPair& pair);

/// Computes both convolutions in bfloat16, to the bits of convolve_rows(). The map between them is
/// written to first.y, unless that is null.
cudaError_t convolve_pair(const RowPair& pair, cudaStream_t stream);

}  // namespace fedsmooth
