// The steps of a FastNetwork: passes over maps [B, H, W, C] of a fixed number of images, weights
// laid out once. In each, an image's values depend on that image alone, not on its place.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fedsmooth/engine/cpu/toeplitz.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {

struct FastStep {
  /// `saved` is the map that is added, for steps that were made to.
  std::function<void(const float* x, const float* saved, float* out, float* scratch)> run;
  int64_t out_size = 0;      // floats for all images
  int64_t scratch_size = 0;  // floats
};

/// Images [B, C, H, W] to normalised maps.
FastStep normalize_step(const Layer& layer, const Shape& in, int64_t images);
/// To blocks of normalised pixels, for the strided convolution that comes next.
FastStep blocks_step(const Layer& normalize, const Layer& conv, const Shape& in,
                     const ToeplitzShape& shape, int64_t images);

/// What a product does beyond its sums and its bias, in this order.
struct FastEnd {
  bool saved = false;  // adds a map
  bool relu = false;
  bool pool = false;                               // the maximum over 2x2 pixels; not after a sum
  std::optional<Layer> activation = std::nullopt;  // other than ReLU; in finish_step() alone
};

/// A convolution by patches. `bias` has a value for every output.
FastStep window_step(const Layer& conv, const Shape& in, const Shape& out, int64_t images,
                     const FastEnd& end, const Array& weight, const Array& bias);
/// By a scheme of toeplitz.h.
FastStep toeplitz_step(const Layer& conv, const ToeplitzShape& shape, int64_t images,
                       const FastEnd& end, const Array& weight, const Array& bias);
FastStep linear_step(const Layer& linear, const Shape& in, int64_t images, const FastEnd& end,
                     const Array& weight, const Array& bias);
/// Every stride-th pixel, channels filled up with zeros.
FastStep subsample_step(const Layer& layer, const Shape& in, const Shape& out, int64_t images);

/// x scale + shift per channel: a batch norm with its running statistics.
FastStep scale_step(std::vector<float> scale, std::vector<float> shift, const Shape& in,
                    int64_t images);
/// A sum, an activation, or both.
FastStep finish_step(const Shape& in, int64_t images, const FastEnd& end);
FastStep max_pool_step(const Layer& layer, const Shape& in, const Shape& out, int64_t images);
FastStep average_pool_step(const Shape& in, int64_t images);

}  // namespace fedsmooth
