// Networks are data: a list of layers, with the weights passed beside it. One description serves
// the reference passes, the faster engines, the parameter counter and the model file.
// Nothing here holds state, so that many sets of weights can go through one network.
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
    kBatchNorm,  // with its running statistics
    kGroupNorm,  // by the statistics of `groups` groups of an image's channels
    kRelu,       // max(x, 0)
    kLeakyRelu,  // x where x > 0, else slope x
    kSilu,       // x / (1 + exp(-x)), also called swish
    kGelu,       // x Phi(x) with the normal distribution Phi, by erf
    kMaxPool,    // square window, stride = kernel unless given, no padding
    kAvgPool,    // over the whole map
    kSubsample,  // every stride-th pixel; channels filled up with zeros to `outputs`
    kDropout,    // the identity whenever votes are counted
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

/// Added to a variance before its root is taken, by group norm too.
inline constexpr double kBatchNormEpsilon = 1e-5;

/// [C, H, W]; after a linear layer [features, 1, 1].
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
  int64_t fan_in = 0;   // bounds the initial value; 0: starts at `initial`
  float initial = 0.0f;

  /// Whether it holds a batch norm's running variances, which are never negative.
  bool is_variance() const;
};

/// The network's tensors in the order in which the forward pass uses them. An Error where layers do
/// not fit together.
std::vector<Parameter> parameters(const Network& network);

/// The weights that a layer itself has, without those of the layers inside a residual.
size_t count_tensors(const Layer& layer);

/// Shape after all layers; [classes, 1, 1] for a classifier.
Shape output_shape(const Network& network);

/// Shape after one layer other than a residual block, or an Error if it cannot follow `shape`.
Shape shape_after(const Layer& layer, const Shape& shape);

/// Number of trained values.
int64_t count_weights(const Network& network);

/// PyTorch's default initialisation: uniform within 1 / sqrt(fan_in), norms with weight 1 and bias
/// 0.
Weights initial_weights(const Network& network, Key key);

}  // namespace fedsmooth
