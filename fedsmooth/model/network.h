// A network is data: a list of layers, without weights, which are passed separately. One
// description serves the reference passes, the faster engines, the parameter counter and the model
// file. It holds no state, so one network can be evaluated with many sets of weights at the same
// time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

struct Layer {
  enum class Kind {
    kNormalize,  // (x - mean) / sd per channel
    kConv,       // square kernel, zero padding
    kBatchNorm,  // by batch statistics in training, by running statistics in evaluation
    kGroupNorm,  // by the statistics of `groups` groups of an image's channels
    kRelu,       // max(x, 0)
    kLeakyRelu,  // x where x > 0, else slope x
    kSilu,       // x / (1 + exp(-x)), also called swish
    kGelu,       // x Phi(x) with the normal distribution Phi, by erf
    kMaxPool,    // square window, stride = kernel unless given, no padding
    kAvgPool,    // over the whole map
    kSubsample,  // keeps every stride-th pixel; zero channels are appended up to `outputs`
    kDropout,    // in training only; the identity when votes are counted
    kLinear,     // flattens its input
    kResidual    // body(x) + shortcut(x); an empty shortcut is x itself
  };

  Kind kind = Kind::kRelu;
  std::string name;     // of its tensors: "features.0" owns features.0.weight and features.0.bias
  int64_t outputs = 0;  // conv, linear, subsample
  int64_t kernel = 1;   // conv, max-pool
  int64_t stride = 1;   // conv, max-pool, subsample
  int64_t padding = 0;  // conv
  bool bias = true;     // conv, linear
  bool standardize = false;           // conv: uses its filters standardised, see standardize.h
  double drop_rate = 0.0;             // dropout
  double slope = 0.01;                // leaky-relu
  int64_t groups = 1;                 // group norm
  std::vector<double> mean, sd;       // normalize
  std::vector<Layer> body, shortcut;  // residual

  bool operator==(const Layer&) const = default;
};

/// Added to the variance before its square root is taken, in batch and group norms.
inline constexpr double kBatchNormEpsilon = 1e-5;

/// Sizes [C, H, W] of a map; [features, 1, 1] after a linear layer.
using Shape = std::array<int64_t, 3>;

struct Network {
  std::string name;
  Shape input = {};
  std::vector<Layer> layers;
};

/// One tensor per parameter, in the order of parameters().
using Weights = std::vector<Array>;

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  bool trained = true;  // false: a running statistic
  int64_t fan_in = 0;   // initial values are within 1 / sqrt(fan_in); 0: all are `initial`
  float initial = 0.0f;

  /// Returns whether the tensor holds a batch norm's running variances, which are never negative.
  bool is_variance() const;
};

/// Returns the network's tensors in the order in which the forward pass uses them. Throws an Error
/// where layers do not fit together.
std::vector<Parameter> parameters(const Network& network);

/// Returns the number of tensors of a layer itself, without those of the layers inside a residual.
size_t count_tensors(const Layer& layer);

/// Returns the shape after all layers: [classes, 1, 1] for a classifier.
Shape output_shape(const Network& network);

/// Returns the shape after one layer other than a residual block. Throws an Error if the layer
/// cannot follow `shape`.
Shape shape_after(const Layer& layer, const Shape& shape);

/// Returns the number of trained values, running statistics excluded.
int64_t count_weights(const Network& network);

/// Returns weights by PyTorch's default initialisation: uniform within 1 / sqrt(fan_in), norms with
/// weight 1 and bias 0.
Weights initial_weights(const Network& network, Key key);

}  // namespace fedsmooth
