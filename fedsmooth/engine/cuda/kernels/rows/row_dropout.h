// Dropout of row maps (row_maps.h), by the draws of the reference: a value is kept or not by its
// coordinate in the client's list of rows [row, channel, y, x].
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// What the streams of a training pass are named by.
struct DropoutDraws {
  const uint64_t* keys = nullptr;            // [client]
  const ClientSettings* settings = nullptr;  // [client]
  const int* step = nullptr;                 // number of the current step in the round
  int passes = 1, pass = 0;                  // passes of a step, and which one this is
};

/// Arguments of drop_values().
struct RowDropout {
  int clients = 0, rows = 0;
  MapShape map;
  int channels = 0;            // without those that fill up
  float rate = 0, factor = 1;  // share of values that are dropped; factor of the others
  uint32_t sample = 0;
  DropoutDraws draws;  // without keys every value is kept as it is, as in mode kAnswers
  const void* x = nullptr;
  const void* add = nullptr;   // added to the result; null: none; may be y
  const void* mask = nullptr;  // the result is zero where this is not positive; null: none
  void* y = nullptr;
};
/// Computes y = factor x where a value is kept, else 0. As the gradient has the same factors,
/// the function computes it, too, with dy as x; then `add` is added and `mask` applied.
cudaError_t drop_values(Precision precision, const RowDropout& d, cudaStream_t stream);

}  // namespace fedsmooth
