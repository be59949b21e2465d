// Dropout of row maps (row_maps.h), with the draws of the reference: whether a value is kept
// depends on its index in the client's values [row, channel, y, x], without channels that fill up.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// Identifies the random streams of a training pass.
struct DropoutDraws {
  const uint64_t* keys = nullptr;            // [client]
  const ClientSettings* settings = nullptr;  // [client]
  const int* step = nullptr;                 // number of the current step in the round
  int passes = 1, pass = 0;                  // number of passes of a step; index of this one
};

/// Arguments of drop_values().
struct RowDropout {
  int clients = 0, rows = 0;
  MapShape map;
  int channels = 0;            // without those that fill up
  float rate = 0, factor = 1;  // share of values that are dropped; factor of the others
  uint32_t sample = 0;         // see Stage::dropout_sample
  DropoutDraws draws;          // without keys no value is dropped or scaled, as in mode kAnswers
  const void* x = nullptr;
  const void* add = nullptr;   // added to the result; null: none; may be y
  const void* mask = nullptr;  // the result is zero where this is not positive; null: none
  void* y = nullptr;
};
/// Computes y = factor x where a value is kept, else 0; then adds `add` and applies `mask`. With dy
/// as x it computes the gradient, which has the same factors.
cudaError_t drop_values(Precision precision, const RowDropout& d, cudaStream_t stream);

}  // namespace fedsmooth
