// Prepares the weights of a wave's clients for convolutions of row maps (row_convolution.h), and
// applies a step of SGD to them.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// A convolution and its batch norm: their tensors are offsets in a client's vector, see GraphNode.
struct KernelPlace {
  int64_t weight = 0;
  int taps = 0, in_channels = 0, out_channels = 0;
  bool fixed = false, has_norm = false, has_bias = false;
  int64_t bias = 0;                                          // of the convolution
  int64_t norm_bias = 0, scale = 0, mean = 0, variance = 0;  // of the batch norm, if has_norm
  int channel = 0;                                           // see GraphNode::channel
};
/// Returns the number of blocks that prepare a convolution's weights: one for each tile of 64 x 64
/// channels of each tap.
int preparing_blocks(const KernelPlace& place);

/// Arguments of prepare_weights().
struct WorkingWeights {
  int clients = 0, nodes = 0, channels = 0;  // nodes: convolutions; channels: GpuGraph::channels
  int blocks = 0;                            // largest preparing_blocks() of the nodes
  const KernelPlace* places = nullptr;       // [node]
  const float* vectors = nullptr;            // [client, size]
  int64_t size = 0, working = 0;  // size of a vector; size of the kernels at its beginning
  bool fold = false;
  void *kernels = nullptr, *turned = nullptr;  // [client, working]
  float* shift = nullptr;                      // [client, channels]
};
/// Writes kernels in the working precision: as [tap, K, C] to `kernels` and, for gradients of
/// inputs, as [taps - 1 - tap, C, K] to `turned`. With `fold`, batch norms with their running
/// statistics are folded into the kernels and `shift`. Where no norm is folded, `shift` is the
/// convolution's bias, or zero if it has none.
cudaError_t prepare_weights(Precision precision, const WorkingWeights& w, cudaStream_t stream);

/// Arguments of step_weights(). Sizes and offsets are those of GpuGraph.
struct RowStep {
  int clients = 0, pieces = 0;
  int64_t size = 0, kernels = 0, trained = 0;
  int64_t begin = 0;  // where the trained weights after the fixed kernels begin: GpuGraph::wide
  /// Gradients of the weights before `kernels` [piece, client, kernels], whose pieces are added up,
  /// and of those after `begin` [client, size].
  const float *kernel_gradients = nullptr, *gradients = nullptr;
  float *weights = nullptr, *velocity = nullptr;  // [client, size]
  const float* global = nullptr;  // weights at the round's beginning, for FedProx; null: without it
  const ClientSettings* settings = nullptr;  // [client]
};
/// Applies a step of SGD to all trained weights.
cudaError_t step_weights(const RowStep& step, cudaStream_t stream);

}  // namespace fedsmooth
