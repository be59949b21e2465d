// Prepares the weights of a wave's clients for row_convolution.h, and applies a step of SGD to
// them.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// A convolution's tensors, as offsets in a client's vector; see GraphNode.
struct KernelPlace {
  int64_t weight = 0;
  int taps = 0, in_channels = 0, out_channels = 0;
  bool fixed = false, has_norm = false, has_bias = false;
  int64_t bias = 0;                                          // of the convolution
  int64_t norm_bias = 0, scale = 0, mean = 0, variance = 0;  // of the norm
  int channel = 0;
};
/// Returns the number of blocks that prepare a convolution's weights: of its taps, each in tiles of
/// 64 x 64 channels.
int preparing_blocks(const KernelPlace& place);

/// Arguments of prepare_weights().
struct WorkingWeights {
  int clients = 0, nodes = 0, channels = 0;  // nodes with a convolution; channels of all of them
  int blocks = 0;                            // largest preparing_blocks() of the nodes
  const KernelPlace* places = nullptr;       // [node]
  const float* vectors = nullptr;            // [client, size]
  int64_t size = 0, working = 0;  // size of a vector, and of the kernels at its beginning
  bool fold = false;
  void *kernels = nullptr, *turned = nullptr;  // [client, working]
  float* shift = nullptr;                      // [client, channels]
};
/// Writes kernels in the working precision: [tap, K, C] to `kernels` and, for gradients of inputs,
/// [taps - 1 - tap, C, K] to `turned`. With `fold`, batch norms are folded, by their running
/// statistics, into kernels and `shift`; without a norm to fold, `shift` is the convolution's bias
/// or zero.
cudaError_t prepare_weights(Precision precision, const WorkingWeights& w, cudaStream_t stream);

/// Arguments of step_weights(). Sizes and offsets are those of GpuGraph.
struct RowStep {
  int clients = 0, pieces = 0;
  int64_t size = 0, kernels = 0, trained = 0;
  int64_t begin = 0;  // offset of the trained weights that are not in kernels
  /// Gradients of kernels [piece, client, kernels], to be added up, and of others [client, size].
  const float *kernel_gradients = nullptr, *gradients = nullptr;
  float *weights = nullptr, *velocity = nullptr;  // [client, size]
  const float* global = nullptr;  // weights at the round's beginning, for FedProx; null: without it
  const ClientSettings* settings = nullptr;  // [client]
};
/// Applies a step of SGD to all trained weights.
cudaError_t step_weights(const RowStep& step, cudaStream_t stream);

}  // namespace fedsmooth
