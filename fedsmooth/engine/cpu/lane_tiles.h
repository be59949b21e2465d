// 3x3 convolutions of stride 1 by tiles of 4x4 outputs (Tile4 of toeplitz_schemes.h): a quarter of
// the multiplications, in both gradients too. Tiles may hang over a map's edge.
//
// With B, G, A for the scheme's matrices of inputs, kernel and outputs, and tiles x and y,
//
//     y = A ((G k G^T) * (B x B^T)) A^T,        dk = G^T (sum over tiles (B x B^T) * (A^T dy A)) G,
//
// and dx is the convolution of dy by the kernel turned around.
#pragma once

#include <vector>

#include "fedsmooth/engine/cpu/lane_layers.h"

namespace fedsmooth {

/// Whether a convolution can be done so: 3x3, stride 1, outputs a multiple of 16.
bool fits_tiles(const LaneConvolution& conv);

/// y = conv(x), without its bias. `fresh` says that the kernel changed.
void convolve_by_tiles(const LaneConvolution& conv, Lanes lanes, const float* kernel,
                       const float* x, float* y, bool fresh, LaneScratch& scratch);
void convolve_gradient_by_tiles(const LaneConvolution& conv, Lanes lanes, const float* kernel,
                                const float* dy, float* dx, LaneScratch& scratch);
/// [3, 3, C, K].
std::vector<float> kernel_gradient_by_tiles(const LaneConvolution& conv, Lanes lanes,
                                            const float* x, const float* dy, LaneScratch& scratch);

}  // namespace fedsmooth
