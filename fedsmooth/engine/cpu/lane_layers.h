// Convolutions of a LaneNetwork. Maps are [H, W, C, lanes], kernels [k, k, C, K]. The number of
// lanes is a multiple of 16; the first `batch` of them hold images. All arrays are dense float32.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

struct Lanes {
  int64_t batch = 0;  // images
  int64_t count = 0;  // lanes
};

/// A convolution between maps of fixed shapes; a linear layer is a convolution over the whole map.
/// padded_outputs() is K rounded up to a multiple of 16.
struct LaneConvolution {
  Shape in, out;
  int64_t kernel, stride, padding;
  bool bias, relu;
  bool tiles = false;  // computed by lane_tiles.h

  int64_t padded_outputs() const { return (out[0] + 15) / 16 * 16; }
};

/// The memory that a convolution keeps between its passes.
struct LaneScratch {
  std::vector<float> transformed;  // kernel of a scheme
  std::vector<float> sums;         // inputs of a scheme's products
  std::vector<float> products, rows;
};

/// Writes y = conv(x) + bias, followed by a ReLU if it has one. `fresh`: the kernel has changed.
void convolve(const LaneConvolution& conv, Lanes lanes, const float* kernel, const float* bias,
              const float* x, float* y, bool fresh, LaneScratch& scratch);

/// Applies a ReLU in place. NaN stays NaN.
void relu(float* y, int64_t size);
/// Sets dy to zero where the ReLU's output y is zero.
void relu_gradient(const float* y, int64_t size, float* dy);

/// Writes dx, the convolution of dy by the transposed kernel.
void convolve_gradient(const LaneConvolution& conv, Lanes lanes, const float* kernel,
                       const float* dy, float* dx, LaneScratch& scratch);

/// Gradients of the kernel [k, k, C, K] and of the bias [K], empty without a bias.
struct KernelGradient {
  std::vector<float> kernel, bias;
};
KernelGradient kernel_gradient(const LaneConvolution& conv, Lanes lanes, const float* x,
                               const float* dy, LaneScratch& scratch);

}  // namespace fedsmooth
