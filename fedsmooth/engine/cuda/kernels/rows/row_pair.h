// Two convolutions one after the other, with the map between them in shared memory.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth {

/// `second` reads what `first` gives. That is written too if first.y is given, as masks of ReLUs
/// need it; second.x is not read. The same bits as by convolve_rows().
struct RowPair {
  RowConvolution first, second;
};

/// Whether convolve_pair() takes them: 3x3 kernels on 16 channels of 32x32 pixels, 32 of 16x16 or
/// 64 of 8x8, and no sums.
bool can_pair(const RowPair& pair);

/// In bfloat16.
cudaError_t convolve_pair(const RowPair& pair, cudaStream_t stream);

}  // namespace fedsmooth
