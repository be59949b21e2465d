// Products of small matrices in place: rows of the right side are read as whole vectors and must be
// dense; entries of the left side are read one by one. A BLAS copies both sides into a layout of
// its own at every call, which at these sizes costs as much as it saves. Every result is one chain
// of fused multiply-adds over the depth, in order, so that a row's result does not depend on its
// position or on the other rows.
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

/// Instruction sets in ascending order; a machine has all up to best_instructions(). kPortable also
/// rounds after each multiplication; kAvx2 and kAvx512 give the same bits as each other.
enum class Instructions { kPortable, kAvx2, kAvx512 };
Instructions best_instructions();

/// Computes the product with `instructions`, which the machine must have.
void multiply(const Product& product, Instructions instructions = best_instructions());

/// Returns the width of a panel for matrices with `columns` columns, a multiple of 16.
int64_t panel_width(int64_t columns);

/// Rearranges matrices [P, depth, columns] into panels [columns / width, P, depth, width]. A panel
/// stays in the first-level cache while many rows are multiplied by it.
Array pack_panels(const Array& matrices);

}  // namespace fedsmooth
