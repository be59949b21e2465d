#include "fedsmooth/engine/reference/convolutions.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fedsmooth/base/matrix_product.h"
#include "fedsmooth/engine/reference/windows.h"
#include "fedsmooth/model/standardize.h"

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
Values<Number> filters_of(const Layer& layer, const Values<Number>& weight) {
  if (!layer.standardize) return weight;
  Values<Number> filters = weight;
  const int64_t values = std::ssize(weight) / layer.outputs;
  for (int64_t k = 0; k < layer.outputs; ++k) {
    Number* filter = filters.data() + k * values;
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < values; ++i) mean += filter[i] / static_cast<double>(values);
    for (int64_t i = 0; i < values; ++i) squares += (filter[i] - mean) * (filter[i] - mean);
    const double length = std::sqrt(squares + kStandardizeEpsilon);
    for (int64_t i = 0; i < values; ++i) {
      filter[i] = static_cast<Number>((filter[i] - mean) / length);
    }
  }
  return filters;
}

// With v = u / |u|, u = w - mean(w) and |u|^2 = sum of u^2 + epsilon: dv = du / |u| - v (v du) /
// |u|, and du is dw less its mean.
template <typename Number>
Values<Number> filters_back(const Layer& layer, const Values<Number>& weight,
                            const Values<Number>& gradient) {
  if (!layer.standardize) return gradient;
  const Values<Number> filters = filters_of(layer, weight);
  Values<Number> found = gradient;
  const int64_t values = std::ssize(weight) / layer.outputs;
  for (int64_t k = 0; k < layer.outputs; ++k) {
    const Number *w = weight.data() + k * values, *v = filters.data() + k * values;
    Number* g = found.data() + k * values;
    double mean = 0, squares = 0, mean_gradient = 0, product = 0;
    for (int64_t i = 0; i < values; ++i) mean += w[i] / static_cast<double>(values);
    for (int64_t i = 0; i < values; ++i) {
      squares += (w[i] - mean) * (w[i] - mean);
      mean_gradient += g[i] / static_cast<double>(values);
      product += double{g[i]} * v[i];
    }
    const double length = std::sqrt(squares + kStandardizeEpsilon);
    for (int64_t i = 0; i < values; ++i) {
      g[i] = static_cast<Number>((g[i] - mean_gradient - v[i] * product) / length);
    }
  }
  return found;
}

#define FEDSMOOTH_INSTANTIATE(N)                                                              \
  template Map<N> convolve(const Layer&, const Map<N>&, const Values<N>&, const Values<N>&,   \
                           const Shape&);                                                     \
  template Map<N> convolve_back(const Layer&, const Map<N>&, const Values<N>&, const Shape&); \
  template Values<N> weight_gradient(const Layer&, const Map<N>&, const Map<N>&);             \
  template Values<N> bias_gradient(const Map<N>&);                                            \
  template Values<N> filters_of(const Layer&, const Values<N>&);                              \
  template Values<N> filters_back(const Layer&, const Values<N>&, const Values<N>&);
FEDSMOOTH_INSTANTIATE(float)
FEDSMOOTH_INSTANTIATE(double)

}  // namespace fedsmooth::reference
