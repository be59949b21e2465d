#include "fedsmooth/engine/reference/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/reference/windows.h"

namespace fedsmooth::reference {

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

namespace {

// P(Z <= x) of a standard normal Z.
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double activation(const Layer& layer, double x) {
  switch (layer.kind) {
    case Layer::Kind::kLeakyRelu:
      return x < 0 ? layer.slope * x : x;
    case Layer::Kind::kSilu:
      return x / (1 + std::exp(-x));
    case Layer::Kind::kGelu:
      return x * normal_cdf(x);
    default:
      throw Bug("reference: not an activation");
  }
}

double activation_slope(const Layer& layer, double x) {
  switch (layer.kind) {
    case Layer::Kind::kLeakyRelu:
      return x > 0 ? 1 : layer.slope;
    case Layer::Kind::kSilu: {
      const double sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    }
    case Layer::Kind::kGelu: {
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      return normal_cdf(x) + x * density;
    }
    default:
      throw Bug("reference: not an activation");
  }
}

}  // namespace

template <typename Number>
Map<Number> activate(const Layer& layer, const Map<Number>& x) {
  if (layer.kind == Layer::Kind::kRelu) return relu(x);
  Map<Number> y = x;
  for (Number& value : y.values) value = static_cast<Number>(activation(layer, value));
  return y;
}

template <typename Number>
Map<Number> activate_back(const Layer& layer, const Map<Number>& x, const Map<Number>& dy) {
  if (layer.kind == Layer::Kind::kRelu) return relu_back(x, dy);  // as positive as the output
  Map<Number> dx = dy;
  for (size_t i = 0; i < dx.values.size(); ++i) {
    dx.values[i] = static_cast<Number>(dx.values[i] * activation_slope(layer, x.values[i]));
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

#define FEDSMOOTH_INSTANTIATE(N)                                                            \
  template Map<N> relu(const Map<N>&);                                                      \
  template Map<N> relu_back(const Map<N>&, const Map<N>&);                                  \
  template Map<N> activate(const Layer&, const Map<N>&);                                    \
  template Map<N> activate_back(const Layer&, const Map<N>&, const Map<N>&);                \
  template Map<N> max_pool(const Layer&, const Map<N>&, const Shape&);                      \
  template Map<N> max_pool_back(const Layer&, const Map<N>&, const Map<N>&, const Map<N>&); \
  template Map<N> average_pool(const Map<N>&);                                              \
  template Map<N> average_pool_back(const Map<N>&, const Shape&);                           \
  template Map<N> subsample(const Layer&, const Map<N>&, const Shape&);                     \
  template Map<N> subsample_back(const Layer&, const Map<N>&, const Shape&);
FEDSMOOTH_INSTANTIATE(float)
FEDSMOOTH_INSTANTIATE(double)

}  // namespace fedsmooth::reference
