// Layers of a LaneNetwork without weights, on maps [H, W, C, lanes].
#pragma once

#include "fedsmooth/engine/cpu/lane_layers.h"

namespace fedsmooth {

/// Maximum over windows. NaN wins.
void pool(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes, const float* x,
          float* y);
/// To the first pixel of each window that has the maximum.
void pool_gradient(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes,
                   const float* x, const float* y, const float* dy, float* dx);

/// The mean over all pixels.
void average_pool(const Shape& in, Lanes lanes, const float* x, float* y);
void average_pool_gradient(const Shape& in, Lanes lanes, const float* dy, float* dx);

/// Every stride-th pixel; channels beyond the input's are zero.
void subsample(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes, const float* x,
               float* y);
void subsample_gradient(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes,
                        const float* dy, float* dx);

/// to += more.
void add_map(const float* more, int64_t size, float* to);

}  // namespace fedsmooth
