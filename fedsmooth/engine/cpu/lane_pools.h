// The layers without weights of a LaneNetwork, on maps [H, W, C, lanes].
#pragma once

#include "fedsmooth/engine/cpu/lane_layers.h"

namespace fedsmooth {

/// Writes the maximum over each window. NaN is larger than any number.
void pool(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes, const float* x,
          float* y);
/// To the first pixel of each window that has the maximum.
void pool_gradient(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes,
                   const float* x, const float* y, const float* dy, float* dx);

/// Writes the mean over all pixels.
void average_pool(const Shape& in, Lanes lanes, const float* x, float* y);
void average_pool_gradient(const Shape& in, Lanes lanes, const float* dy, float* dx);

/// Writes every stride-th pixel; channels beyond those of the input are zero.
void subsample(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes, const float* x,
               float* y);
void subsample_gradient(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes,
                        const float* dy, float* dx);

/// Adds `more` to `to`.
void add_map(const float* more, int64_t size, float* to);

}  // namespace fedsmooth
