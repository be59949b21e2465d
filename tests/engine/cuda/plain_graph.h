// The passes of a graph of family kRows in double, in plain loops: what the GPU computes, node by
// node, with gradients added up as the plan says.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "fedsmooth/engine/cuda/gradient_plan.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

class PlainGraph {
 public:
  using Values = std::vector<double>;

  PlainGraph(const GpuGraph& graph, const Weights& weights)
      : graph_(graph),
        plan_(plan_gradients(graph)),
        vector_(graph.size),
        gradients_(graph.size),
        maps_(graph.maps.size()),
        map_gradients_(graph.maps.size()),
        raw_(graph.nodes.size()),
        statistics_(graph.nodes.size()) {
    size_t next = 0;
    for (const Array& w : weights) {
      for (int64_t i = 0; i < w.count(); ++i) vector_[graph.positions[next++]] = w.floats()[i];
    }
  }

  /// Returns logits [row, class].
  Values forward(const Array& images, const std::optional<Stream>& training) {
    rows_ = images.size(0);
    training_ = training;
    const int64_t area = graph_.input[1] * graph_.input[2], size = graph_.input[0] * area;
    const int64_t cells = std::ssize(graph_.source);
    maps_[0] = Values(rows_ * cells);
    for (int64_t i = 0; i < rows_ * cells; ++i) {
      const int value = graph_.source[i % cells];
      if (value < 0) continue;
      const double pixel = images.floats()[i / cells * size + value];
      maps_[0][i] = (pixel - graph_.mean[value / area]) * graph_.scale[value / area];
    }
    for (size_t i = 0; i + 1 < graph_.nodes.size(); ++i) run(i);
    return answer();
  }

  /// Returns the gradient of the images, and adds that of the weights up.
  Values backward(const Values& dlogits) {
    for (size_t m = 0; m < maps_.size(); ++m) map_gradients_[m].assign(maps_[m].size(), NAN);
    answer_back(dlogits);
    for (size_t i = graph_.nodes.size() - 1; i-- > 0;) run_back(i);
    const int64_t area = graph_.input[1] * graph_.input[2], size = graph_.input[0] * area;
    const int64_t cells = std::ssize(graph_.source);
    Values found(rows_ * size);
    for (int64_t i = 0; i < rows_ * cells; ++i) {
      const int value = graph_.source[i % cells];
      if (value < 0) continue;
      found[i / cells * size + value] = gradient_of(0)[i] * graph_.scale[value / area];
    }
    return found;
  }

  /// Returns the gradients of all weights, in the order of parameters(); zero if not trained.
  Values weight_gradients() const {
    Values found;
    for (const int position : graph_.positions) found.push_back(gradients_[position]);
    return found;
  }

 private:
  struct Statistics {
    Values mean, inverse;  // of each value's channel, or of the group of its row's channel
  };

  Values& gradient_of(int map) { return map_gradients_[plan_.array[map]]; }

  static int64_t at(int64_t row, const MapShape& map, int64_t y, int64_t x, int64_t c) {
    return ((row * map.height + y) * map.width + x) * map.channels + c;
  }

  // Calls each(index in x, index in y, tap) for every pair of a window's pixels, with channel 0.
  template <class Each>
  void for_windows(const MapShape& in, const MapShape& out, int kernel, int stride, int padding,
                   const Each& each) const {
    for (int64_t row = 0; row < rows_; ++row) {
      for (int p = 0; p < out.pixels(); ++p) {
        for (int tap = 0; tap < kernel * kernel; ++tap) {
          const int y = p / out.width * stride + tap / kernel - padding;
          const int x = p % out.width * stride + tap % kernel - padding;
          if (y < 0 || y >= in.height || x < 0 || x >= in.width) continue;
          each(at(row, in, y, x, 0), at(row, out, p / out.width, p % out.width, 0), tap);
        }
      }
    }
  }

  double weight_of(const GraphNode& n, int tap, int k, int c) const {
    if (n.fixed) return k == c ? 1 : 0;
    return vector_[n.weight + (int64_t{tap} * n.out.channels + k) * n.in.channels + c];
  }

  void run(size_t i) {
    const GraphNode& n = graph_.nodes[i];
    const Values& x = maps_[n.input];
    Values y(rows_ * n.out.row_size());
    if (n.convolves()) {
      for (size_t j = 0; n.has_bias && j < y.size(); ++j) {
        y[j] = vector_[n.bias + static_cast<int64_t>(j) % n.out.channels];
      }
      for_windows(n.in, n.out, n.kernel, n.stride, n.padding, [&](int64_t a, int64_t b, int tap) {
        for (int k = 0; k < n.out.channels; ++k) {
          for (int c = 0; c < n.in.channels; ++c) y[b + k] += weight_of(n, tap, k, c) * x[a + c];
        }
      });
    } else if (n.has_pool()) {
      if (!n.means) y.assign(y.size(), -INFINITY);
      for_windows(n.in, n.out, n.pool, n.pool_stride, 0, [&](int64_t a, int64_t b, int) {
        for (int c = 0; c < n.in.channels; ++c) {
          y[b + c] =
              n.means ? y[b + c] + x[a + c] / (n.pool * n.pool) : std::max(y[b + c], x[a + c]);
        }
      });
    } else {
      y = x;
      if (n.has_dropout()) drop(n, y);
    }
    if (n.has_norm) {
      raw_[i] = y;
      take_norm(n, statistics_[i], y);
    }
    for (size_t j = 0; j < y.size(); ++j) {
      if (n.shortcut >= 0) y[j] += maps_[n.shortcut][j];
      if (n.relu && y[j] < 0) y[j] = 0;
    }
    maps_[n.output] = y;
  }

  // Multiplies values by the factors of the reference's dropout.
  void drop(const GraphNode& n, Values& values) const {
    if (!training_) return;
    const int64_t channels = n.dropout.channels, pixels = n.out.pixels();
    std::vector<float> uniform(rows_ * channels * pixels);
    fill_uniform(*training_, n.dropout.sample, uniform.data(), std::ssize(uniform));
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t i = 0; i < channels * pixels; ++i) {
        const bool kept =
            uniform[row * channels * pixels + i] >= static_cast<float>(n.dropout.rate);
        double& value = values[(row * pixels + i % pixels) * n.out.channels + i / pixels];
        value *= kept ? 1 / (1 - n.dropout.rate) : 0;
      }
    }
  }

  // Calls each(indices of the values with the same statistics).
  template <class Each>
  void for_groups(const GraphNode& n, const Each& each) const {
    const int64_t pixels = n.out.pixels(), channels = n.out.channels;
    const bool grouped = n.has_group_norm();
    const int64_t size = grouped ? n.groups.channels : 1;
    const int64_t groups = grouped ? n.groups.count : channels;
    for (int64_t row = 0; row < (grouped ? rows_ : 1); ++row) {
      for (int64_t g = 0; g < groups; ++g) {
        std::vector<int64_t> indices;
        const int64_t end = grouped ? row + 1 : rows_;
        for (int64_t p = row * pixels; p < end * pixels; ++p) {
          for (int64_t c = g * size; c < (g + 1) * size; ++c) indices.push_back(p * channels + c);
        }
        each(indices);
      }
    }
  }

  bool by_running(const GraphNode& n) const { return n.has_batch_norm() && !training_; }

  void take_norm(const GraphNode& n, Statistics& s, Values& y) const {
    s.mean.assign(y.size(), 0);
    s.inverse.assign(y.size(), 0);
    for_groups(n, [&](const std::vector<int64_t>& indices) {
      const auto count = static_cast<double>(indices.size());
      double mean = 0, variance = 0;
      for (const int64_t j : indices) mean += y[j] / count;
      for (const int64_t j : indices) variance += (y[j] - mean) * (y[j] - mean) / count;
      if (by_running(n)) {
        mean = vector_[n.mean + indices[0] % n.out.channels];
        variance = vector_[n.variance + indices[0] % n.out.channels];
      }
      for (const int64_t j : indices) {
        s.mean[j] = mean;
        s.inverse[j] = 1 / std::sqrt(variance + kBatchNormEpsilon);
      }
    });
    for (size_t j = 0; j < y.size(); ++j) {
      const int64_t c = static_cast<int64_t>(j) % n.out.channels;
      const double normed = (y[j] - s.mean[j]) * s.inverse[j];
      y[j] = vector_[n.scale + c] * normed + vector_[n.norm_bias + c];
    }
  }

  Values norm_back(size_t i, const Values& dy) {
    const GraphNode& n = graph_.nodes[i];
    const Statistics& s = statistics_[i];
    Values dx(dy.size());
    for_groups(n, [&](const std::vector<int64_t>& indices) {
      const auto count = static_cast<double>(indices.size());
      const auto normed = [&](int64_t j) { return (raw_[i][j] - s.mean[j]) * s.inverse[j]; };
      double mean = 0, product = 0;
      for (const int64_t j : indices) {
        const int64_t c = j % n.out.channels;
        gradients_[n.norm_bias + c] += dy[j];
        gradients_[n.scale + c] += dy[j] * normed(j);
        mean += vector_[n.scale + c] * dy[j] / count;
        product += vector_[n.scale + c] * dy[j] * normed(j) / count;
      }
      if (by_running(n)) mean = product = 0;
      for (const int64_t j : indices) {
        const double own = vector_[n.scale + j % n.out.channels] * dy[j];
        dx[j] = s.inverse[j] * (own - mean - normed(j) * product);
      }
    });
    return dx;
  }

  // Adds a part to a map's gradient as the step says.
  void take_step(const GradientPlan::Step& step, int map, const Values& part) {
    Values sum = part;
    for (size_t j = 0; j < sum.size(); ++j) {
      if (step.add >= 0) sum[j] += map_gradients_[step.add][j];
      if (step.mask && !(maps_[map][j] > 0)) sum[j] = 0;
    }
    gradient_of(map) = sum;
  }

  void run_back(size_t i) {
    const GraphNode& n = graph_.nodes[i];
    const Values& x = maps_[n.input];
    Values dy = gradient_of(n.output), dx(x.size());
    if (n.shortcut >= 0 && plan_.shortcuts[i].writes) take_step(plan_.shortcuts[i], n.shortcut, dy);
    if (n.has_norm) dy = norm_back(i, dy);
    if (n.convolves()) {
      for (size_t j = 0; n.has_bias && j < dy.size(); ++j) {
        gradients_[n.bias + static_cast<int64_t>(j) % n.out.channels] += dy[j];
      }
      for_windows(n.in, n.out, n.kernel, n.stride, n.padding, [&](int64_t a, int64_t b, int tap) {
        for (int k = 0; k < n.out.channels; ++k) {
          for (int c = 0; c < n.in.channels; ++c) {
            dx[a + c] += weight_of(n, tap, k, c) * dy[b + k];
            if (n.fixed) continue;
            const int64_t line = int64_t{tap} * n.out.channels + k;
            gradients_[n.weight + line * n.in.channels + c] += x[a + c] * dy[b + k];
          }
        }
      });
    } else if (n.has_pool()) {
      std::vector<bool> taken(dy.size());
      for_windows(n.in, n.out, n.pool, n.pool_stride, 0, [&](int64_t a, int64_t b, int) {
        for (int c = 0; c < n.in.channels; ++c) {
          if (n.means) dx[a + c] += dy[b + c] / (n.pool * n.pool);
          if (n.means || taken[b + c] || x[a + c] != maps_[n.output][b + c]) continue;
          taken[b + c] = true;
          dx[a + c] += dy[b + c];
        }
      });
    } else {
      dx = dy;
      if (n.has_dropout()) drop(n, dx);
    }
    take_step(plan_.inputs[i], n.input, dx);
  }

  // The index of a feature that value j of the last map is part of.
  int64_t feature_of(int64_t j) const {
    const GraphNode& head = graph_.head();
    return j % head.in.row_size() % (head.of_mean ? head.in.channels : head.in.row_size());
  }

  // Calls each(value of the last map, logit, position of the weight).
  template <class Each>
  void for_head(const Each& each) const {
    const GraphNode& head = graph_.head();
    const int64_t features = int64_t{head.taps()} * head.in.channels;
    for (int64_t j = 0; j < std::ssize(maps_[head.input]); ++j) {
      for (int k = 0; k < graph_.classes; ++k) {
        each(j, j / head.in.row_size() * graph_.classes + k,
             head.weight + k * features + feature_of(j));
      }
    }
  }

  double share() const { return graph_.head().of_mean ? 1.0 / graph_.head().in.pixels() : 1.0; }

  Values answer() const {
    const GraphNode& head = graph_.head();
    Values logits(rows_ * graph_.classes);
    for (size_t j = 0; head.has_bias && j < logits.size(); ++j) {
      logits[j] = vector_[head.bias + static_cast<int64_t>(j) % graph_.classes];
    }
    for_head([&](int64_t j, int64_t logit, int64_t weight) {
      logits[logit] += share() * maps_[head.input][j] * vector_[weight];
    });
    return logits;
  }

  void answer_back(const Values& dlogits) {
    const GraphNode& head = graph_.head();
    Values dx(maps_[head.input].size());
    for (size_t j = 0; head.has_bias && j < dlogits.size(); ++j) {
      gradients_[head.bias + static_cast<int64_t>(j) % graph_.classes] += dlogits[j];
    }
    for_head([&](int64_t j, int64_t logit, int64_t weight) {
      dx[j] += share() * vector_[weight] * dlogits[logit];
      gradients_[weight] += share() * maps_[head.input][j] * dlogits[logit];
    });
    take_step(plan_.inputs.back(), head.input, dx);
  }

  const GpuGraph& graph_;
  GradientPlan plan_;
  Values vector_, gradients_;
  int64_t rows_ = 0;
  std::optional<Stream> training_;
  std::vector<Values> maps_, map_gradients_;
  std::vector<Values> raw_;             // [node]: the map before its norm
  std::vector<Statistics> statistics_;  // [node]
};

}  // namespace fedsmooth
