#include "fedsmooth/engine/cpu/lane_norms.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/toeplitz_lanes.h"

namespace fedsmooth {
namespace {

// Values that are summed in float, and that stay in the cache between two passes over them.
constexpr int64_t kChunk = 32 * 1024;

// Sixteen partial sums a channel.
using Partial = std::vector<float>;

Partial no_sums(int64_t channels) { return Partial(channels * kToeplitzLanes, 0.0f); }

double total(const Partial& sums, int64_t channel) {
  double sum = 0;
  for (int64_t i = 0; i < kToeplitzLanes; ++i) sum += sums[channel * kToeplitzLanes + i];
  return sum;
}

// Calls use(first pixel, pixels) for chunks of a map.
template <class Use>
void for_each_chunk(int64_t pixels, int64_t channels, Lanes lanes, const Use& use) {
  const int64_t most = std::max<int64_t>(1, kChunk / (channels * lanes.count));
  for (int64_t p = 0; p < pixels; p += most) use(p, std::min(most, pixels - p));
}

// add(x, dy, channel, sum) for each of the sums [C, 16], over the lanes that hold images.
template <class Add>
FEDSMOOTH_INLINE void add_terms(const float* x, const float* dy, int64_t pixels, int64_t channels,
                                Lanes lanes, float* sums, const Add& add) {
  const int64_t whole = lanes.batch / kToeplitzLanes * kToeplitzLanes;
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; ++c, x += lanes.count, dy += lanes.count) {
      float* sum = sums + c * kToeplitzLanes;
      ToeplitzLanes part, value, gradient;
      load_lanes(sum, part);
      for (int64_t i = 0; i < whole; i += kToeplitzLanes) {
        load_lanes(x + i, value);
        load_lanes(dy + i, gradient);
        add(value, gradient, c, part);
      }
      store_lanes(part, sum);
      for (int64_t i = whole; i < lanes.batch; ++i) add(x[i], dy[i], c, sum[i - whole]);
    }
  }
}

FEDSMOOTH_VECTOR_CLONES
void add_values(const float* x, int64_t pixels, int64_t channels, Lanes lanes, float* sums) {
  add_terms(x, x, pixels, channels, lanes, sums,
            [](const auto& v, const auto&, int64_t, auto& sum)
                FEDSMOOTH_INLINE_LAMBDA { sum += v; });
}

FEDSMOOTH_VECTOR_CLONES
void add_squares(const float* x, const float* mean, int64_t pixels, int64_t channels, Lanes lanes,
                 float* sums) {
  add_terms(x, x, pixels, channels, lanes, sums,
            [mean](const auto& v, const auto&, int64_t c, auto& sum)
                FEDSMOOTH_INLINE_LAMBDA { sum += (v - mean[c]) * (v - mean[c]); });
}

FEDSMOOTH_VECTOR_CLONES
void add_products(const float* x, const float* dy, const float* mean, int64_t pixels,
                  int64_t channels, Lanes lanes, float* sums) {
  add_terms(x, dy, pixels, channels, lanes, sums,
            [mean](const auto& v, const auto& d, int64_t c, auto& sum)
                FEDSMOOTH_INLINE_LAMBDA { sum += d * (v - mean[c]); });
}

// y = (x - mean) factor + shift.
FEDSMOOTH_VECTOR_CLONES
void scale_map(const float* __restrict x, const float* mean, const float* factor,
               const float* shift, int64_t pixels, int64_t channels, int64_t lanes,
               const float* __restrict saved, bool relu, float* __restrict y) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; ++c, x += lanes, y += lanes) {
      const float m = mean[c], f = factor[c], s = shift[c];
      for (int64_t i = 0; i < lanes; ++i) y[i] = (x[i] - m) * f + s;
      if (saved != nullptr) {
        for (int64_t i = 0; i < lanes; ++i) y[i] += saved[i];
        saved += lanes;
      }
      if (relu) {
        // Written so that NaN stays NaN.
        for (int64_t i = 0; i < lanes; ++i) y[i] = y[i] < 0.0f ? 0.0f : y[i];
      }
    }
  }
}

// dy = a dy + b (x - mean) + c in lanes with images, else 0.
FEDSMOOTH_VECTOR_CLONES
void combine_gradients(const float* __restrict x, const float* mean, const float* a, const float* b,
                       const float* c, int64_t pixels, int64_t channels, Lanes lanes,
                       float* __restrict dy) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t k = 0; k < channels; ++k, x += lanes.count, dy += lanes.count) {
      const float m = mean[k], of_dy = a[k], of_x = b[k], shift = c[k];
      for (int64_t i = 0; i < lanes.batch; ++i) dy[i] = of_dy * dy[i] + of_x * (x[i] - m) + shift;
      for (int64_t i = lanes.batch; i < lanes.count; ++i) dy[i] = 0.0f;
    }
  }
}

std::vector<float> in_float(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

// Chunk by chunk: the mean and the squares of the differences from it, combined in double (Chan,
// Golub, LeVeque).
void use_batch_statistics(int64_t pixels, Lanes lanes, const float* x, LaneNorm& norm) {
  constexpr double kMomentum = 0.1;
  const auto channels = std::ssize(norm.weight);
  std::vector<double> mean(channels), squares(channels);
  double count = 0;
  for_each_chunk(pixels, channels, lanes, [&](int64_t first, int64_t some) {
    const float* from = x + first * channels * lanes.count;
    const auto more = static_cast<double>(some * lanes.batch);
    Partial sums = no_sums(channels), off = no_sums(channels);
    add_values(from, some, channels, lanes, sums.data());
    std::vector<double> chunk_mean(channels);
    for (int64_t c = 0; c < channels; ++c) chunk_mean[c] = total(sums, c) / more;
    const std::vector<float> rounded = in_float(chunk_mean);
    add_squares(from, rounded.data(), some, channels, lanes, off.data());
    for (int64_t c = 0; c < channels; ++c) {
      const double rounding = chunk_mean[c] - rounded[c], apart = chunk_mean[c] - mean[c];
      squares[c] += total(off, c) - more * rounding * rounding +
                    apart * apart * count * more / (count + more);
      mean[c] += apart * more / (count + more);
    }
    count += more;
  });
  norm.of_batch = true;
  norm.mean = mean;
  norm.scale.resize(channels);
  for (int64_t c = 0; c < channels; ++c) {
    norm.scale[c] = 1 / std::sqrt(squares[c] / count + kBatchNormEpsilon);
    const auto move = [&](float& running, double now) {
      running = static_cast<float>((1 - kMomentum) * running + kMomentum * now);
    };
    move(norm.running_mean[c], mean[c]);
    move(norm.running_variance[c], squares[c] / std::max(count - 1, 1.0));
  }
}

void use_running_statistics(LaneNorm& norm) {
  norm.of_batch = false;
  norm.mean.assign(norm.running_mean.begin(), norm.running_mean.end());
  norm.scale.clear();
  for (const float variance : norm.running_variance) {
    norm.scale.push_back(1 / std::sqrt(variance + kBatchNormEpsilon));
  }
}

void apply_norm(const LaneNorm& norm, int64_t pixels, Lanes lanes, const float* x,
                const float* saved, bool relu, float* y) {
  std::vector<double> factor = norm.scale;
  for (size_t c = 0; c < factor.size(); ++c) factor[c] *= norm.weight[c];
  scale_map(x, in_float(norm.mean).data(), in_float(factor).data(), norm.bias.data(), pixels,
            std::ssize(factor), lanes.count, saved, relu, y);
}

void find_norm_gradients(int64_t pixels, Lanes lanes, const float* x, const float* dy,
                         LaneNorm& norm) {
  const auto channels = std::ssize(norm.weight);
  const std::vector<float> mean = in_float(norm.mean);
  std::vector<double> sum(channels), product(channels);
  for_each_chunk(pixels, channels, lanes, [&](int64_t first, int64_t some) {
    const int64_t at = first * channels * lanes.count;
    Partial sums = no_sums(channels), products = no_sums(channels);
    add_values(dy + at, some, channels, lanes, sums.data());
    add_products(x + at, dy + at, mean.data(), some, channels, lanes, products.data());
    for (int64_t c = 0; c < channels; ++c) {
      sum[c] += total(sums, c);
      product[c] += total(products, c) * norm.scale[c];
    }
  });
  norm.bias_gradient = in_float(sum);
  norm.weight_gradient = in_float(product);
}

// With n = (x - mean) scale: dx = weight scale (dy - mean(dy) - n mean(dy n)), where the means come
// from the statistics.
void norm_gradient(const LaneNorm& norm, int64_t pixels, Lanes lanes, const float* x, float* dy) {
  const auto count = static_cast<double>(pixels * lanes.batch);
  const auto channels = std::ssize(norm.weight);
  std::vector<double> a(channels), b(channels), c(channels);
  for (int64_t k = 0; k < channels; ++k) {
    a[k] = norm.weight[k] * norm.scale[k];
    if (!norm.of_batch) continue;
    b[k] = -a[k] * norm.scale[k] * norm.weight_gradient[k] / count;
    c[k] = -a[k] * norm.bias_gradient[k] / count;
  }
  combine_gradients(x, in_float(norm.mean).data(), in_float(a).data(), in_float(b).data(),
                    in_float(c).data(), pixels, channels, lanes, dy);
}

}  // namespace fedsmooth
