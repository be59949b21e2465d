// Products of small matrices whose right side is laid out once: [rows, depth] x [depth, width] for
// one panel of 16 or 32 columns, which stays in the first-level cache while the rows pass by. Every
// result is one chain of fused multiply-adds over the depth, in order, so that a row's result does
// not depend on its position or on the other rows. A BLAS lays out both sides at every call, which
// at a depth of 48 or 64 costs as much as it saves.
#pragma once

#include <cstdint>

#include "fedsmooth/base/tensor.h"

namespace fedsmooth {

/// Columns of a panel for matrices with so many columns, which must be a multiple of 16.
int64_t panel_width(int64_t columns);

/// Matrices [P, depth, columns] to panels [columns / width, P, depth, width].
Tensor pack_panels(const Tensor& matrices);

/// In rising order; a machine has all up to best_instructions(). The portable products round after
/// the multiplication too; the others agree to the bit.
enum class Instructions { kPortable, kAvx2, kAvx512 };
Instructions best_instructions();

/// out [rows, width] = x [rows, depth] times panel [depth, width].
void multiply_panel(const float* x, int64_t rows, int64_t depth, const float* panel, int64_t width,
                    float* out, Instructions instructions = best_instructions());

}  // namespace fedsmooth
