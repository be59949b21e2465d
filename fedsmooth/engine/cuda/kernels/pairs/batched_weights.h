// Operations on the weights of a wave's clients on the GPU: giving all clients the same, a step of
// SGD, checking bounds, and adding them up for the average or copying them one by one. A client's
// weights are a vector (GpuGraph). Functions enqueue kernels on the stream and return the launch's
// status; pointers are to device memory.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

namespace fedsmooth {

/// Arguments of spread_weights().
struct WeightSpread {
  int clients = 0;
  int64_t size = 0, count = 0;                    // size of a client's vector, number of weights
  const float* values = nullptr;                  // [count]: the weights
  const int* positions = nullptr;                 // [count]: of each weight in a vector
  float* vector = nullptr;                        // [size]: scratch
  float *weights = nullptr, *velocity = nullptr;  // [client, size]
  void* working = nullptr;  // [client, size]: weights in bfloat16; null: not wanted
  float* global = nullptr;  // [client, size]: a copy that no step changes; null: not wanted
};
/// Gives all clients the same weights, and zero momentum. Positions of no weight are zero.
cudaError_t spread_weights(const WeightSpread& spread, cudaStream_t stream);

/// Arguments of update_weights(), for one layer's kernel.
struct WeightUpdate {
  int clients = 0, rows = 0;
  int in_channels = 0, out_channels = 0, in_pixels = 0, out_pixels = 0;
  const void *x = nullptr, *dy = nullptr;
  DevicePairs pairs;                              // by tap
  float *weights = nullptr, *velocity = nullptr;  // [tap, C, K], of the first client
  void* working = nullptr;        // weights in bfloat16; null: passes read `weights`
  const float* global = nullptr;  // weights at the round's beginning, for FedProx; null: without it
  int64_t client_size = 0;        // stride from one client's weights to the next
  const uint8_t* real = nullptr;  // [tap, C, K]: 1 if it is a weight; null: all are
  const ClientSettings* settings = nullptr;  // [client]
};
/// Computes dw[t] = sum of x[i]^T dy[o], and applies a step of SGD to the weights, their momentum
/// and, in bfloat16, the working weights.
cudaError_t update_weights(Precision precision, const WeightUpdate& update, cudaStream_t stream);

/// Arguments of update_biases(), for one layer.
struct BiasUpdate {
  int rows = 0, channels = 0, pixels = 0;
  const void* dy = nullptr;                       // [client, pixel, row, channel]
  float *weights = nullptr, *velocity = nullptr;  // [channel], of the first client
  const float* global = nullptr;  // bias at the round's beginning, for FedProx; null: without it
  int64_t client_size = 0;        // stride from one client's bias to the next
  const ClientSettings* settings = nullptr;  // [client]
};
/// Computes the gradients of the biases of all layers, up to eight in a launch, and applies a step
/// of SGD to them. It may overlap the preceding launch on the stream, which must be
/// update_weights(), launched without overlap, and must not touch these biases.
cudaError_t update_biases(Precision precision, int clients, const std::vector<BiasUpdate>& layers,
                          cudaStream_t stream);

/// Arguments of check_weights().
struct WeightCheck {
  int clients = 0;
  int64_t size = 0, trained = 0;   // size of a client's vector, beginning of its running statistics
  const float* weights = nullptr;  // [client, size]
  float largest = 0, largest_statistic = 0;  // bounds of weights and of running statistics
  int* usable = nullptr;                     // [client]; the caller sets it to 1
};
/// Sets usable[k] to 0 for each client k with a value that is NaN or beyond its bound.
cudaError_t check_weights(const WeightCheck& check, cudaStream_t stream);

/// Computes values[i] = vector[positions[i]], for the weights or the momentum of one client.
cudaError_t gather_values(const float* vector, const int* positions, int64_t count, float* values,
                          cudaStream_t stream);
/// Computes vector[positions[i]] = values[i], for the weights or the momentum of one client.
cudaError_t place_values(const float* values, const int* positions, int64_t count, float* vector,
                         cudaStream_t stream);

/// Arguments of sum_weights().
struct WeightSum {
  int clients = 0;
  int64_t size = 0, trained = 0;      // size of a client's vector, beginning of its statistics
  int64_t count = 0, statistics = 0;  // number of trained weights, number of running statistics
  const float* weights = nullptr;     // [client, size]
  const int* positions = nullptr;     // [count + statistics]
  const double* scale = nullptr;      // [client]
  const int* usable = nullptr;        // [client]
  long long* sums = nullptr;          // [trained]: scratch
  long long* out = nullptr;           // [count + kWideWords statistics]
};
/// Computes the words of a FixedPointSum: sums of llrint(scale[k] w_k[positions[i]]) over the
/// usable clients k, first in one word for each trained weight i, then in kWideWords words for each
/// running statistic.
cudaError_t sum_weights(const WeightSum& sum, cudaStream_t stream);

}  // namespace fedsmooth
