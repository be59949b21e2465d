// Networks on the GPU that are evaluated with others as one classifier, and requests for their
// votes.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/cuda/network_passes.h"
#include "fedsmooth/model/fold.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/engine/cuda/residual_networks.h"

namespace fedsmooth {

inline constexpr int kBatch = 1024;

// An image of bytes over 255, as exact noise needs it.
inline VoteRequest request_for(uint64_t seed, int64_t n) {
  const Array x =
      each(uniform({3, 32, 32}, seed), [](float v) { return std::round(255 * v) / 255; });
  return {x, 0.5, n, {make_key(seed, Purpose::kEstimation), 7}};
}

// A network with folded batch norms and a bias that makes classes equally likely around the image
// of request_for(1, n), so that noise decides.
inline Model member(const std::string& name, uint64_t seed) {
  Model model;
  if (name.starts_with("resnet")) {
    model = fold_batch_norm(residual_model(name, /*statistics=*/true, seed));
  } else {
    model = {residual_network(name), {}, 0.5, {}};
    model.weights = initial_weights(model.network, Key{seed});
    for (Array& w : model.weights) w = each(w, [](float v) { return 1.5f * v; });
  }
  const VoteRequest r = request_for(1, 1);
  const BaseClassifier f = base_classifier(model);
  Array noisy({f.batch, 3, 32, 32});
  add_noise(r.x, r.sigma, r.stream, 0, f.batch, noisy);
  const Array logits = f.make()(noisy);
  Array bias = model.weights.back().clone();
  for (int64_t i = 0; i < logits.count(); ++i) {
    bias.floats()[i % 10] -= logits.floats()[i] / static_cast<float>(f.batch);
  }
  model.weights.back() = bias;
  return model;
}

inline std::vector<VotePasses> passes_of(const std::vector<Model>& models) {
  std::vector<VotePasses> passes;
  for (const Model& model : models) passes.push_back(network_passes(model, kBatch));
  return passes;
}

}  // namespace fedsmooth
