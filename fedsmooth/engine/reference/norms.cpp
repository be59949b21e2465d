#include "fedsmooth/engine/reference/norms.h"

#include <algorithm>
#include <cmath>

namespace fedsmooth::reference {

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
NormGradients<Number> batch_norm_back(const Map<Number>& x, const Map<Number>& dy,
                                      const Statistics& statistics, const Values<Number>& weight,
                                      bool of_batch) {
  const auto count = static_cast<double>(x.images * x.area());
  NormGradients<Number> found{Map<Number>(x.images, x.shape), {}, {}};
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

template <typename Number>
Statistics group_statistics(const Map<Number>& x, int64_t groups) {
  const int64_t size = x.size() / groups;
  Statistics statistics;
  for (int64_t g = 0; g < x.images * groups; ++g) {
    const Number* values = x.values.data() + g * size;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < size; ++i) sum += values[i];
    const double mean = sum / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) squares += (values[i] - mean) * (values[i] - mean);
    statistics.mean.push_back(mean);
    statistics.scale.push_back(1 /
                               std::sqrt(squares / static_cast<double>(size) + kBatchNormEpsilon));
  }
  return statistics;
}

template <typename Number>
Map<Number> group_norm(const Map<Number>& x, int64_t groups, const Statistics& statistics,
                       const Values<Number>& weight, const Values<Number>& bias) {
  const int64_t channels = x.shape[0], in_group = channels / groups;
  Map<Number> y(x.images, x.shape);
  for (int64_t b = 0; b < x.images; ++b) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t g = b * groups + c / in_group;
      const auto scale = static_cast<Number>(weight[c] * statistics.scale[g]);
      const auto mean = static_cast<Number>(statistics.mean[g]);
      const Number* from = x.plane(b, c);
      Number* to = y.plane(b, c);
      for (int64_t i = 0; i < x.area(); ++i) to[i] = scale * (from[i] - mean) + bias[c];
    }
  }
  return y;
}

// With n = (x - mean) scale and e = weight dy: dweight = sum dy n, dbias = sum dy over images and
// pixels, and dx = scale (e - mean(e) - n mean(e n)), the means over a group of an image.
template <typename Number>
NormGradients<Number> group_norm_back(const Map<Number>& x, const Map<Number>& dy, int64_t groups,
                                      const Statistics& statistics, const Values<Number>& weight) {
  const int64_t channels = x.shape[0], in_group = channels / groups;
  const auto count = static_cast<double>(in_group * x.area());
  std::vector<double> dweight(channels), dbias(channels);
  NormGradients<Number> found{Map<Number>(x.images, x.shape), {}, {}};
  for (int64_t g = 0; g < x.images * groups; ++g) {
    const int64_t b = g / groups, first = g % groups * in_group;
    const double mean = statistics.mean[g], scale = statistics.scale[g];
    double sum = 0, product = 0;
    for (int64_t c = first; c < first + in_group; ++c) {
      const Number *value = x.plane(b, c), *gradient = dy.plane(b, c);
      double of_bias = 0, of_weight = 0;
      for (int64_t i = 0; i < x.area(); ++i) {
        of_bias += gradient[i];
        of_weight += gradient[i] * (value[i] - mean) * scale;
      }
      dbias[c] += of_bias;
      dweight[c] += of_weight;
      sum += weight[c] * of_bias;
      product += weight[c] * of_weight;
    }
    for (int64_t c = first; c < first + in_group; ++c) {
      const Number *value = x.plane(b, c), *gradient = dy.plane(b, c);
      Number* out = found.x.plane(b, c);
      for (int64_t i = 0; i < x.area(); ++i) {
        const double n = (value[i] - mean) * scale;
        out[i] = static_cast<Number>(scale *
                                     (weight[c] * gradient[i] - sum / count - n * product / count));
      }
    }
  }
  found.weight.assign(dweight.begin(), dweight.end());
  found.bias.assign(dbias.begin(), dbias.end());
  return found;
}

#define FEDSMOOTH_INSTANTIATE(N)                                                             \
  template Map<N> normalize(const Layer&, const Map<N>&);                                    \
  template Map<N> normalize_back(const Layer&, const Map<N>&);                               \
  template Statistics batch_statistics(const Map<N>&, Values<N>&, Values<N>&);               \
  template Statistics running_statistics(const Values<N>&, const Values<N>&);                \
  template Map<N> batch_norm(const Map<N>&, const Statistics&, const Values<N>&,             \
                             const Values<N>&);                                              \
  template NormGradients<N> batch_norm_back(const Map<N>&, const Map<N>&, const Statistics&, \
                                            const Values<N>&, bool);                         \
  template Statistics group_statistics(const Map<N>&, int64_t);                              \
  template Map<N> group_norm(const Map<N>&, int64_t, const Statistics&, const Values<N>&,    \
                             const Values<N>&);                                              \
  template NormGradients<N> group_norm_back(const Map<N>&, const Map<N>&, int64_t,           \
                                            const Statistics&, const Values<N>&);
FEDSMOOTH_INSTANTIATE(float)
FEDSMOOTH_INSTANTIATE(double)

}  // namespace fedsmooth::reference
