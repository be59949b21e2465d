// What happens to the weights of a wave's clients on the GPU: they are spread, stepped by SGD, and
// added up for the average or taken one by one.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

namespace fedsmooth {

/// The same weights for all clients, momentum zero.
struct WeightSpread {
  int clients = 0;
  int64_t size = 0, count = 0;  // of a client's vector; of the weights
  const float* values = nullptr;
  const int* positions = nullptr;  // of the weights in a vector
  float* vector = nullptr;         // scratch
  float *weights = nullptr, *velocity = nullptr;
  void* working = nullptr;  // in bfloat16; null: not wanted
  float* global = nullptr;  // a copy that no step moves; null: not wanted
};
cudaError_t spread_weights(const WeightSpread& spread, cudaStream_t stream);

/// dw[t] = sum of x[i]^T dy[o], and with it a step of SGD on the weights, their momentum and, if
/// they are apart, the weights in the working precision.
struct WeightUpdate {
  int clients = 0, rows = 0;
  int in_channels = 0, out_channels = 0, in_pixels = 0, out_pixels = 0;
  const void *x = nullptr, *dy = nullptr;
  DevicePairs pairs;                              // by tap
  float *weights = nullptr, *velocity = nullptr;  // [tap, C, K]
  void* working = nullptr;                        // null: the weights themselves
  const float* global = nullptr;                  // as the round began, for FedProx; null: without
  int64_t client_size = 0;
  const uint8_t* real = nullptr;  // [tap, C, K]: whether it is a weight at all; null: all are
  const ClientSettings* settings = nullptr;
};
cudaError_t update_weights(Precision precision, const WeightUpdate& update, cudaStream_t stream);

/// A step of SGD on a layer's bias [K].
struct BiasUpdate {
  int rows = 0, channels = 0, pixels = 0;
  const void* dy = nullptr;
  float *weights = nullptr, *velocity = nullptr;
  const float* global = nullptr;  // as above
  int64_t client_size = 0;
  const ClientSettings* settings = nullptr;
};
/// Of all layers at once. The launch just before it on the stream may still run, and must be
/// update_weights(): plainly launched, so that all gradients were there before it began, and of
/// other weights than these.
cudaError_t update_biases(Precision precision, int clients, const std::vector<BiasUpdate>& layers,
                          cudaStream_t stream);

/// Sets usable[k], which is 1 before, to 0 for the clients k with a value beyond its bound.
struct WeightCheck {
  int clients = 0;
  int64_t size = 0, trained = 0;  // of a client's vector; where its running statistics begin
  const float* weights = nullptr;
  float largest = 0, largest_statistic = 0;
  int* usable = nullptr;
};
cudaError_t check_weights(const WeightCheck& check, cudaStream_t stream);

/// values[i] = vector[positions[i]], and back: weights or momentum of one client.
cudaError_t take_values(const float* vector, const int* positions, int64_t count, float* values,
                        cudaStream_t stream);
cudaError_t place_values(const float* values, const int* positions, int64_t count, float* vector,
                         cudaStream_t stream);

/// The words of a FixedPointSum: of llrint(scale[k] w_k[position[i]]) over the usable clients k,
/// for the weights i that are trained in one word each, then for the running statistics in
/// kWideWords.
struct WeightSum {
  int clients = 0;
  int64_t size = 0, trained = 0;  // as above
  int64_t count = 0, statistics = 0;
  const float* weights = nullptr;
  const int* positions = nullptr;  // [count + statistics]
  const double* scale = nullptr;   // [client]
  const int* usable = nullptr;     // [client]
  long long* sums = nullptr;       // [trained]: scratch
  long long* out = nullptr;        // [count + kWideWords statistics]
};
cudaError_t sum_weights(const WeightSum& sum, cudaStream_t stream);

}  // namespace fedsmooth
