// Products of small matrices, read where they lie: the rows of the right side are used as whole
// vectors, so that they must be dense, the entries of the left side one by one. A BLAS lays out
// both sides anew at every call, which at these sizes costs as much as it saves. Every result is
// one chain of fused multiply-adds over the depth, in order, so that a row's result does not depend
// on its position or on the other rows.
#pragma once

#include <cstdint>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// out [rows, columns] = left [rows, depth] times right [depth, columns], or += if `add` is set.
/// The columns are a multiple of 16. Distances between rows and columns are in floats.
struct Product {
  int64_t rows, depth, columns;
  const float* left;
  int64_t left_row, left_column;
  const float* right;
  int64_t right_row;
  float* out;
  int64_t out_row;
  bool add = false;
};

/// In rising order; a machine has all up to best_instructions(). The portable products round after
/// the multiplication too; the others agree to the bit.
enum class Instructions { kPortable, kAvx2, kAvx512 };
Instructions best_instructions();

void multiply(const Product& product, Instructions instructions = best_instructions());

/// Columns of a panel for matrices with so many columns, which must be a multiple of 16.
int64_t panel_width(int64_t columns);

/// Matrices [P, depth, columns] to panels [columns / width, P, depth, width], which stay in the
/// first-level cache while many rows pass by.
Array pack_panels(const Array& matrices);

}  // namespace fedsmooth
