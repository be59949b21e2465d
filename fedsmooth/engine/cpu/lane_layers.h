// Convolutions of a LaneNetwork. Maps are [H, W, C, lanes], kernels [k, k, C, K]; the lanes are a
// multiple of 16, of which the first `batch` hold images. All is dense float32.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

struct Lanes {
  int64_t batch = 0;  // images
  int64_t count = 0;  // lanes
};

/// A convolution between maps of fixed shapes; a linear layer is one over the whole map. `padded`
/// outputs are the K filled up to a multiple of 16.
struct LaneConvolution {
  Shape in, out;
  int64_t kernel, stride, padding;
  bool bias, relu;
  bool tiles = false;  // by lane_tiles.h

  int64_t padded_outputs() const { return (out[0] + 15) / 16 * 16; }
};

/// What a convolution keeps between its passes.
struct LaneScratch {
  std::vector<float> transformed;  // kernel of a scheme
  std::vector<float> sums;         // inputs of a scheme's products
  std::vector<float> products, rows;
};

/// y = conv(x) + bias, then ReLU if it has one. `fresh` says that the kernel changed.
void convolve(const LaneConvolution& conv, Lanes lanes, const float* kernel, const float* bias,
              const float* x, float* y, bool fresh, LaneScratch& scratch);

/// NaN stays NaN.
void relu(float* y, int64_t size);
/// Where a ReLU was at zero no gradient passes.
void relu_gradient(const float* y, int64_t size, float* dy);

/// dx = convolution of dy by the transposed kernel.
void convolve_gradient(const LaneConvolution& conv, Lanes lanes, const float* kernel,
                       const float* dy, float* dx, LaneScratch& scratch);

/// Gradients of the kernel [k, k, C, K] and, where there is one, the bias [K].
struct KernelGradient {
  std::vector<float> kernel, bias;
};
KernelGradient kernel_gradient(const LaneConvolution& conv, Lanes lanes, const float* x,
                               const float* dy, LaneScratch& scratch);

}  // namespace fedsmooth
