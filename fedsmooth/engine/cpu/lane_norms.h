// Batch norm on maps [H, W, C, lanes], with the following sum and ReLU.
#pragma once

#include <vector>

#include "fedsmooth/engine/cpu/lane_layers.h"

namespace fedsmooth {

/// A batch norm's tensors, the statistics of its last pass, and its gradients.
struct LaneNorm {
  std::vector<float> weight, bias, running_mean, running_variance;
  std::vector<double> mean, scale;  // scale = 1 / sqrt(variance + 1e-5)
  bool of_batch = false;            // whether the statistics are the batch's
  std::vector<float> weight_gradient, bias_gradient;
};

/// Sets the statistics to those of the batch x [pixels, C, lanes], over images and pixels, and
/// moves the running statistics a tenth of the way to them, with the unbiased variance.
void use_batch_statistics(int64_t pixels, Lanes lanes, const float* x, LaneNorm& norm);
void use_running_statistics(LaneNorm& norm);

/// Writes y = weight (x - mean) scale + bias, plus `saved` unless it is null, followed by a ReLU if
/// `relu` is set.
void apply_norm(const LaneNorm& norm, int64_t pixels, Lanes lanes, const float* x,
                const float* saved, bool relu, float* y);

/// Computes the gradients of weight and bias, which norm_gradient() also needs.
void find_norm_gradients(int64_t pixels, Lanes lanes, const float* x, const float* dy,
                         LaneNorm& norm);
/// Replaces dy by dx, which is zero in lanes without an image. Gradients flow through statistics of
/// the batch. Call find_norm_gradients() first.
void norm_gradient(const LaneNorm& norm, int64_t pixels, Lanes lanes, const float* x, float* dy);

}  // namespace fedsmooth
