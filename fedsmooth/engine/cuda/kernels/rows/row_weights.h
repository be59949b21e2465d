// Weights of a wave's clients as row_convolution.h reads them, and their step of SGD.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// A convolution's tensors in a client's vector, see graph.h.
struct KernelPlace {
  int64_t weight = 0;
  int taps = 0, in_channels = 0, out_channels = 0;
  bool fixed = false, has_norm = false, has_bias = false;
  int64_t bias = 0, scale = 0, mean = 0, variance = 0;
  int channel = 0;
};

/// Kernels in the working precision, [tap, K, C] and, for the gradient of the input, turned around:
/// [taps - 1 - tap, C, K]. With `fold` as the network answers: norms by their running statistics
/// are in the kernels, and in `shift` [client, channels of all nodes]; without a norm that is the
/// bias.
struct WorkingWeights {
  int clients = 0, nodes = 0, channels = 0;
  const KernelPlace* places = nullptr;
  const float* vectors = nullptr;  // [client, size]
  int64_t size = 0, working = 0;   // of a vector; of the kernels in it
  bool fold = false;
  void *kernels = nullptr, *turned = nullptr;  // [client, working]
  float* shift = nullptr;
};
cudaError_t prepare_weights(Precision precision, const WorkingWeights& w, cudaStream_t stream);

/// A step of SGD on what is trained: gradients of kernels come in pieces [piece, client, kernels],
/// the others lie in `gradients` [client, size].
struct RowStep {
  int clients = 0, pieces = 0;
  int64_t size = 0, kernels = 0, trained = 0;
  int64_t begin = 0;  // of what is trained beside the kernels
  const float *kernel_gradients = nullptr, *gradients = nullptr;
  float *weights = nullptr, *velocity = nullptr;
  const float* global = nullptr;  // as the round began, for FedProx; null: without
  const ClientSettings* settings = nullptr;
};
cudaError_t step_weights(const RowStep& step, cudaStream_t stream);

}  // namespace fedsmooth
