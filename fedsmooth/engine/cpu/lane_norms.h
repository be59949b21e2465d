// Batch norm on maps [H, W, C, lanes], with the sum and the ReLU that follow it.
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

/// Statistics of the batch, over images and pixels: x is [pixels, C, lanes]. Running statistics
/// move a tenth of the way, by the unbiased variance.
void use_batch_statistics(int64_t pixels, Lanes lanes, const float* x, LaneNorm& norm);
void use_running_statistics(LaneNorm& norm);

/// y = weight (x - mean) scale + bias, plus `saved` unless it is null, then ReLU if asked.
void apply_norm(const LaneNorm& norm, int64_t pixels, Lanes lanes, const float* x,
                const float* saved, bool relu, float* y);

/// Gradients of weight and bias, and what norm_gradient() needs of them.
void find_norm_gradients(int64_t pixels, Lanes lanes, const float* x, const float* dy,
                         LaneNorm& norm);
/// dy becomes dx; zero in lanes without an image. With statistics of the batch, gradients flow
/// through them: after find_norm_gradients().
void norm_gradient(const LaneNorm& norm, int64_t pixels, Lanes lanes, const float* x, float* dy);

}  // namespace fedsmooth
