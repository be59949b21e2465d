#include "fedsmooth/engine/reference/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "fedsmooth/base/matrix_product.h"

namespace fedsmooth::reference {
namespace {

int64_t padded(int64_t columns) { return (columns + 15) / 16 * 16; }

// out [rows, columns] (+)= left [rows, depth] times right [depth, columns], which has its columns
// filled up to a multiple of 16, as has out. `left` is read transposed if asked.
template <typename Number>
void multiply_into(int64_t rows, int64_t depth, int64_t columns, const Number* left,
                   bool transposed, const Number* right, Number* out, bool add) {
  const int64_t left_row = transposed ? 1 : depth, left_column = transposed ? rows : 1;
  if constexpr (std::is_same_v<Number, float>) {
    multiply(
        {rows, depth, columns, left, left_row, left_column, right, columns, out, columns, add});
  } else {
    if (!add) std::fill_n(out, rows * columns, Number{0});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t d = 0; d < depth; ++d) {
        const Number factor = left[r * left_row + d * left_column];
        for (int64_t c = 0; c < columns; ++c) {
          out[r * columns + c] += factor * right[d * columns + c];
        }
      }
    }
  }
}

// Calls use(position, entry of the window, pixel) for every pixel of a map that a window meets.
template <typename Use>
void for_each_meeting(const Layer& layer, const Shape& in, const Shape& out, const Use& use) {
  const int64_t kernel = layer.kernel;
  for (int64_t y = 0; y < out[1]; ++y) {
    for (int64_t x = 0; x < out[2]; ++x) {
      for (int64_t i = 0; i < kernel; ++i) {
        for (int64_t j = 0; j < kernel; ++j) {
          const int64_t row = y * layer.stride + i - layer.padding;
          const int64_t column = x * layer.stride + j - layer.padding;
          if (row < 0 || row >= in[1] || column < 0 || column >= in[2]) continue;
          use(y * out[2] + x, i * kernel + j, row * in[2] + column);
        }
      }
    }
  }
}

// A convolution as a matrix product: [positions, C k k] of patches times [C k k, K].
struct Product {
  Layer layer;  // a linear layer is a window over the whole map
  Shape in, out;
  int64_t positions, depth, outputs;

  Product(const Layer& of, const Shape& from, const Shape& to)
      : layer(of), in(from), out(to), positions(to[1] * to[2]), depth(0), outputs(to[0]) {
    if (of.kind == Layer::Kind::kLinear) {
      // Flattened, an image is one pixel of many channels.
      in = {from[0] * from[1] * from[2], 1, 1};
      layer.kernel = layer.stride = 1;
      layer.padding = 0;
    }
    depth = in[0] * layer.kernel * layer.kernel;
  }

  template <typename Number>
  void gather(const Number* image, Number* patches) const {
    std::fill_n(patches, positions * depth, Number{0});
    const int64_t area = in[1] * in[2], taps = layer.kernel * layer.kernel;
    for_each_meeting(layer, in, out, [&](int64_t position, int64_t tap, int64_t pixel) {
      for (int64_t c = 0; c < in[0]; ++c) {
        patches[position * depth + c * taps + tap] = image[c * area + pixel];
      }
    });
  }

  // Adds patches of `width` columns back to where they came from.
  template <typename Number>
  void scatter(const Number* patches, int64_t width, Number* image) const {
    const int64_t area = in[1] * in[2], taps = layer.kernel * layer.kernel;
    for_each_meeting(layer, in, out, [&](int64_t position, int64_t tap, int64_t pixel) {
      for (int64_t c = 0; c < in[0]; ++c) {
        image[c * area + pixel] += patches[position * width + c * taps + tap];
      }
    });
  }

  // [K, positions] of one image as [positions, padded K].
  template <typename Number>
  void turn(const Number* y, Number* rows) const {
    const int64_t width = padded(outputs);
    std::fill_n(rows, positions * width, Number{0});
    for (int64_t k = 0; k < outputs; ++k) {
      for (int64_t p = 0; p < positions; ++p) rows[p * width + k] = y[k * positions + p];
    }
  }
};

}  // namespace

template <typename Number>
Map<Number> normalize(const Layer& layer, const Map<Number>& x) {
  Map<Number> y = x;
  for (int64_t b = 0; b < x.images; ++b) {
    for (int64_t c = 0; c < x.shape[0]; ++c) {
      const auto mean = static_cast<Number>(layer.mean[c]), sd = static_cast<Number>(layer.sd[c]);
      Number* plane = y.plane(b, c);
      for (int64_t i = 0; i < x.area(); ++i) plane[i] = (plane[i] - mean) / sd;
    }
  }
  return y;
}

template <typename Number>
Map<Number> normalize_back(const Layer& layer, const Map<Number>& dy) {
  Map<Number> dx = dy;
  for (int64_t b = 0; b < dy.images; ++b) {
    for (int64_t c = 0; c < dy.shape[0]; ++c) {
      Number* plane = dx.plane(b, c);
      for (int64_t i = 0; i < dy.area(); ++i) plane[i] /= static_cast<Number>(layer.sd[c]);
    }
  }
  return dx;
}

template <typename Number>
Map<Number> convolve(const Layer& layer, const Map<Number>& x, const Values<Number>& weight,
                     const Values<Number>& bias, const Shape& out) {
  const Product product(layer, x.shape, out);
  const int64_t width = padded(product.outputs);
  Values<Number> right(product.depth * width, Number{0});  // [depth, padded K]
  for (int64_t k = 0; k < product.outputs; ++k) {
    for (int64_t d = 0; d < product.depth; ++d)
      right[d * width + k] = weight[k * product.depth + d];
  }
  Map<Number> y(x.images, out);
  Values<Number> patches(product.positions * product.depth), sums(product.positions * width);
  for (int64_t b = 0; b < x.images; ++b) {
    product.gather(x.values.data() + b * x.size(), patches.data());
    multiply_into(product.positions, product.depth, width, patches.data(), false, right.data(),
                  sums.data(), false);
    for (int64_t k = 0; k < product.outputs; ++k) {
      Number* plane = y.plane(b, k);
      const Number shift = bias.empty() ? Number{0} : bias[k];
      for (int64_t p = 0; p < product.positions; ++p) plane[p] = sums[p * width + k] + shift;
    }
  }
  return y;
}

template <typename Number>
Map<Number> convolve_back(const Layer& layer, const Map<Number>& dy, const Values<Number>& weight,
                          const Shape& in) {
  const Product product(layer, in, dy.shape);
  const int64_t width = padded(product.outputs), columns = padded(product.depth);
  Values<Number> right(width * columns, Number{0});  // [padded K, padded depth]
  for (int64_t k = 0; k < product.outputs; ++k) {
    std::copy_n(weight.data() + k * product.depth, product.depth, right.data() + k * columns);
  }
  Map<Number> dx(dy.images, in);
  Values<Number> rows(product.positions * width), patches(product.positions * columns);
  for (int64_t b = 0; b < dy.images; ++b) {
    product.turn(dy.plane(b, 0), rows.data());
    multiply_into(product.positions, width, columns, rows.data(), false, right.data(),
                  patches.data(), false);
    product.scatter(patches.data(), columns, dx.values.data() + b * dx.size());
  }
  return dx;
}

template <typename Number>
Values<Number> weight_gradient(const Layer& layer, const Map<Number>& x, const Map<Number>& dy) {
  const Product product(layer, x.shape, dy.shape);
  const int64_t width = padded(product.outputs);
  Values<Number> sums(product.depth * width, Number{0});  // [depth, padded K]
  Values<Number> patches(product.positions * product.depth), rows(product.positions * width);
  for (int64_t b = 0; b < x.images; ++b) {
    product.gather(x.values.data() + b * x.size(), patches.data());
    product.turn(dy.plane(b, 0), rows.data());
    multiply_into(product.depth, product.positions, width, patches.data(), true, rows.data(),
                  sums.data(), true);
  }
  Values<Number> gradient(product.outputs * product.depth);
  for (int64_t k = 0; k < product.outputs; ++k) {
    for (int64_t d = 0; d < product.depth; ++d) {
      gradient[k * product.depth + d] = sums[d * width + k];
    }
  }
  return gradient;
}

template <typename Number>
Values<Number> bias_gradient(const Map<Number>& dy) {
  Values<Number> gradient(dy.shape[0]);
  for (int64_t c = 0; c < dy.shape[0]; ++c) {
    double sum = 0;
    for (int64_t b = 0; b < dy.images; ++b) {
      for (int64_t i = 0; i < dy.area(); ++i) sum += dy.plane(b, c)[i];
    }
    gradient[c] = static_cast<Number>(sum);
  }
  return gradient;
}

template <typename Number>
Map<Number> relu(const Map<Number>& x) {
  Map<Number> y = x;
  // Written so that NaN stays NaN: a broken evaluation must not turn into a vote.
  for (Number& value : y.values) value = value < 0 ? Number{0} : value;
  return y;
}

template <typename Number>
Map<Number> relu_back(const Map<Number>& y, const Map<Number>& dy) {
  Map<Number> dx = dy;
  for (size_t i = 0; i < dx.values.size(); ++i) {
    if (!(y.values[i] > 0)) dx.values[i] = 0;
  }
  return dx;
}

template <typename Number>
Map<Number> max_pool(const Layer& layer, const Map<Number>& x, const Shape& out) {
  Layer window = layer;
  window.padding = 0;
  Map<Number> y(x.images, out);
  std::fill(y.values.begin(), y.values.end(), -std::numeric_limits<Number>::infinity());
  for (int64_t b = 0; b < x.images; ++b) {
    for (int64_t c = 0; c < x.shape[0]; ++c) {
      const Number* from = x.plane(b, c);
      Number* to = y.plane(b, c);
      for_each_meeting(window, x.shape, out, [&](int64_t position, int64_t, int64_t pixel) {
        const Number value = from[pixel];
        if (value > to[position] || std::isnan(value)) to[position] = value;
      });
    }
  }
  return y;
}

template <typename Number>
Map<Number> max_pool_back(const Layer& layer, const Map<Number>& x, const Map<Number>& y,
                          const Map<Number>& dy) {
  Layer window = layer;
  window.padding = 0;
  Map<Number> dx(x.images, x.shape);
  std::vector<bool> given(y.area());
  for (int64_t b = 0; b < x.images; ++b) {
    for (int64_t c = 0; c < x.shape[0]; ++c) {
      given.assign(y.area(), false);
      const Number *from = x.plane(b, c), *top = y.plane(b, c), *gradient = dy.plane(b, c);
      Number* to = dx.plane(b, c);
      for_each_meeting(window, x.shape, y.shape, [&](int64_t position, int64_t, int64_t pixel) {
        if (given[position] || from[pixel] != top[position]) return;
        to[pixel] += gradient[position];
        given[position] = true;
      });
    }
  }
  return dx;
}

template <typename Number>
Map<Number> average_pool(const Map<Number>& x) {
  Map<Number> y(x.images, {x.shape[0], 1, 1});
  for (int64_t b = 0; b < x.images; ++b) {
    for (int64_t c = 0; c < x.shape[0]; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < x.area(); ++i) sum += x.plane(b, c)[i];
      *y.plane(b, c) = static_cast<Number>(sum / static_cast<double>(x.area()));
    }
  }
  return y;
}

template <typename Number>
Map<Number> average_pool_back(const Map<Number>& dy, const Shape& in) {
  Map<Number> dx(dy.images, in);
  for (int64_t b = 0; b < dy.images; ++b) {
    for (int64_t c = 0; c < in[0]; ++c) {
      std::fill_n(dx.plane(b, c), dx.area(), *dy.plane(b, c) / static_cast<Number>(dx.area()));
    }
  }
  return dx;
}

template <typename Number>
Map<Number> subsample(const Layer& layer, const Map<Number>& x, const Shape& out) {
  Map<Number> y(x.images, out);
  for (int64_t b = 0; b < x.images; ++b) {
    for (int64_t c = 0; c < x.shape[0]; ++c) {
      for (int64_t i = 0; i < y.area(); ++i) {
        const int64_t row = i / out[2] * layer.stride, column = i % out[2] * layer.stride;
        y.plane(b, c)[i] = x.plane(b, c)[row * x.shape[2] + column];
      }
    }
  }
  return y;
}

template <typename Number>
Map<Number> subsample_back(const Layer& layer, const Map<Number>& dy, const Shape& in) {
  Map<Number> dx(dy.images, in);
  for (int64_t b = 0; b < dy.images; ++b) {
    for (int64_t c = 0; c < in[0]; ++c) {
      for (int64_t i = 0; i < dy.area(); ++i) {
        const int64_t row = i / dy.shape[2] * layer.stride, column = i % dy.shape[2] * layer.stride;
        dx.plane(b, c)[row * in[2] + column] = dy.plane(b, c)[i];
      }
    }
  }
  return dx;
}

template <typename Number>
Statistics batch_statistics(const Map<Number>& x, Values<Number>& running_mean,
                            Values<Number>& running_variance) {
  constexpr double kMomentum = 0.1;
  const auto count = static_cast<double>(x.images * x.area());
  Statistics statistics;
  for (int64_t c = 0; c < x.shape[0]; ++c) {
    double sum = 0, squares = 0;
    for (int64_t b = 0; b < x.images; ++b) {
      for (int64_t i = 0; i < x.area(); ++i) sum += x.plane(b, c)[i];
    }
    const double mean = sum / count;
    for (int64_t b = 0; b < x.images; ++b) {
      for (int64_t i = 0; i < x.area(); ++i) {
        const double difference = x.plane(b, c)[i] - mean;
        squares += difference * difference;
      }
    }
    statistics.mean.push_back(mean);
    statistics.scale.push_back(1 / std::sqrt(squares / count + kBatchNormEpsilon));
    const auto move = [&](Number& running, double now) {
      running = static_cast<Number>((1 - kMomentum) * running + kMomentum * now);
    };
    move(running_mean[c], mean);
    move(running_variance[c], squares / std::max(count - 1, 1.0));
  }
  return statistics;
}

template <typename Number>
Statistics running_statistics(const Values<Number>& mean, const Values<Number>& variance) {
  Statistics statistics;
  for (size_t c = 0; c < mean.size(); ++c) {
    statistics.mean.push_back(mean[c]);
    statistics.scale.push_back(1 / std::sqrt(variance[c] + kBatchNormEpsilon));
  }
  return statistics;
}

template <typename Number>
Map<Number> batch_norm(const Map<Number>& x, const Statistics& statistics,
                       const Values<Number>& weight, const Values<Number>& bias) {
  Map<Number> y(x.images, x.shape);
  for (int64_t b = 0; b < x.images; ++b) {
    for (int64_t c = 0; c < x.shape[0]; ++c) {
      const auto scale = static_cast<Number>(weight[c] * statistics.scale[c]);
      const auto mean = static_cast<Number>(statistics.mean[c]);
      const Number* from = x.plane(b, c);
      Number* to = y.plane(b, c);
      for (int64_t i = 0; i < x.area(); ++i) to[i] = scale * (from[i] - mean) + bias[c];
    }
  }
  return y;
}

// With n = (x - mean) scale: dweight = sum dy n, dbias = sum dy, and
// dx = weight scale (dy - mean(dy) - n mean(dy n)), where the means come from the statistics.
template <typename Number>
BatchNormGradients<Number> batch_norm_back(const Map<Number>& x, const Map<Number>& dy,
                                           const Statistics& statistics,
                                           const Values<Number>& weight, bool of_batch) {
  const auto count = static_cast<double>(x.images * x.area());
  BatchNormGradients<Number> found{Map<Number>(x.images, x.shape), {}, {}};
  for (int64_t c = 0; c < x.shape[0]; ++c) {
    const double mean = statistics.mean[c], scale = statistics.scale[c];
    double sum = 0, product = 0;
    for (int64_t b = 0; b < x.images; ++b) {
      const Number *value = x.plane(b, c), *gradient = dy.plane(b, c);
      for (int64_t i = 0; i < x.area(); ++i) {
        sum += gradient[i];
        product += gradient[i] * (value[i] - mean) * scale;
      }
    }
    found.weight.push_back(static_cast<Number>(product));
    found.bias.push_back(static_cast<Number>(sum));
    const double mean_dy = of_batch ? sum / count : 0,
                 mean_product = of_batch ? product / count : 0;
    for (int64_t b = 0; b < x.images; ++b) {
      const Number *value = x.plane(b, c), *gradient = dy.plane(b, c);
      Number* out = found.x.plane(b, c);
      for (int64_t i = 0; i < x.area(); ++i) {
        const double n = (value[i] - mean) * scale;
        out[i] =
            static_cast<Number>(weight[c] * scale * (gradient[i] - mean_dy - n * mean_product));
      }
    }
  }
  return found;
}

#define FEDSMOOTH_INSTANTIATE(N)                                                                  \
  template Map<N> normalize(const Layer&, const Map<N>&);                                         \
  template Map<N> normalize_back(const Layer&, const Map<N>&);                                    \
  template Map<N> convolve(const Layer&, const Map<N>&, const Values<N>&, const Values<N>&,       \
                           const Shape&);                                                         \
  template Map<N> convolve_back(const Layer&, const Map<N>&, const Values<N>&, const Shape&);     \
  template Values<N> weight_gradient(const Layer&, const Map<N>&, const Map<N>&);                 \
  template Values<N> bias_gradient(const Map<N>&);                                                \
  template Map<N> relu(const Map<N>&);                                                            \
  template Map<N> relu_back(const Map<N>&, const Map<N>&);                                        \
  template Map<N> max_pool(const Layer&, const Map<N>&, const Shape&);                            \
  template Map<N> max_pool_back(const Layer&, const Map<N>&, const Map<N>&, const Map<N>&);       \
  template Map<N> average_pool(const Map<N>&);                                                    \
  template Map<N> average_pool_back(const Map<N>&, const Shape&);                                 \
  template Map<N> subsample(const Layer&, const Map<N>&, const Shape&);                           \
  template Map<N> subsample_back(const Layer&, const Map<N>&, const Shape&);                      \
  template Statistics batch_statistics(const Map<N>&, Values<N>&, Values<N>&);                    \
  template Statistics running_statistics(const Values<N>&, const Values<N>&);                     \
  template Map<N> batch_norm(const Map<N>&, const Statistics&, const Values<N>&,                  \
                             const Values<N>&);                                                   \
  template BatchNormGradients<N> batch_norm_back(const Map<N>&, const Map<N>&, const Statistics&, \
                                                 const Values<N>&, bool);
FEDSMOOTH_INSTANTIATE(float)
FEDSMOOTH_INSTANTIATE(double)

}  // namespace fedsmooth::reference
