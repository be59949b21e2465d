// One stage of a LaneNetwork: its weights, its pass forwards, and what the gradients need of it.
#pragma once

#include <vector>

#include "fedsmooth/engine/cpu/lane_norms.h"
#include "fedsmooth/model/stages.h"
#include "fedsmooth/model/standardize.h"

namespace fedsmooth {

inline int64_t size_of(const Shape& shape) { return shape[0] * shape[1] * shape[2]; }

struct LaneStage {
  Stage stage;
  LaneConvolution conv;             // of a product
  std::vector<float> kernel, bias;  // [k, k, C, K], [K]
  std::vector<float> standardized;  // the kernel that the last pass used, if it standardises
  LaneNorm norm;
  std::vector<float> before_norm, map, pooled;  // of the last pass, [H, W, C, lanes]
  std::vector<float> before_activation;         // unless that is a ReLU
  LaneScratch scratch;
  KernelGradient gradient;

  explicit LaneStage(const Stage& of);

  const std::vector<float>& y() const { return stage.pool ? pooled : map; }
  int64_t pixels() const { return stage.map[1] * stage.map[2]; }

  /// Its tensors, of all in the order of parameters().
  void load(const Weights& weights);
  void store(const std::vector<Parameter>& parameters, Weights& weights) const;

  /// `saved` is null where nothing is added. `fresh` says that the weights changed.
  void run(const std::vector<float>& x, const float* saved, Lanes lanes, bool training, bool fresh);

  /// The kernel of the last pass, standardised or as it is.
  const std::vector<float>& filters() const { return standardized.empty() ? kernel : standardized; }
  /// Sets `gradient` from the stage's input x and the gradient dy of the product.
  void find_kernel_gradient(const std::vector<float>& x, const std::vector<float>& dy, Lanes lanes);

  /// Turns the gradient of the activation's output into that of its input.
  void activation_back(std::vector<float>& dy) const;

 private:
  FilterLayout filter_layout() const;
  void finish(const float* saved, Lanes lanes, bool training);
  void finish_with_relu(const float* saved, Lanes lanes, bool training);
};

}  // namespace fedsmooth
