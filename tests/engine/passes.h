// What a network's passes give, for tests that compare engines.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "fedsmooth/engine/reference/reference_passes.h"
#include "tests/engine/reference/double_networks.h"

namespace fedsmooth {

/// Logits, and the gradients of a weighted sum of them.
struct PassResult {
  Array logits, images;
  Weights weights;  // where nothing is trained: the running statistics after the pass
};

/// The factors of that sum.
inline Array logit_factors(const Sizes& sizes) {
  return each(uniform(sizes, 9), [](float v) { return v - 0.5f; });
}

inline PassResult run_passes(Passes& passes, const Weights& weights, const Array& images,
                             const std::optional<Stream>& training = std::nullopt) {
  passes.load(weights);
  PassResult result{passes.forward(images, training)};
  const Array factors = logit_factors(result.logits.sizes());
  result.images = passes.backward_to_images(factors);
  // Passes have an order of values of their own. What takes the weights' place comes out in ours.
  for (const WeightGradient& g : passes.backward_to_weights(factors)) {
    std::copy_n(g.gradient, g.count, g.weights);
  }
  result.weights = passes.weights();
  return result;
}

/// To `relative` of the largest value.
inline void expect_close(const Array& a, const Array& b, double relative, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_LE(difference(a, b), relative * largest(b)) << what << ", largest " << largest(b);
  EXPECT_GT(largest(b), 0) << what;
}

inline void expect_close(const PassResult& a, const PassResult& b, const Network& network,
                         double relative) {
  expect_close(a.logits, b.logits, relative, "logits");
  expect_close(a.images, b.images, relative, "gradient of the images");
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) {
    expect_close(a.weights[i], b.weights[i], relative, parameters(network)[i].name);
  }
}

/// Logits [B, K] by the reference in double.
inline std::vector<double> exact_logits(const Network& network, const Weights& weights,
                                        const Array& images) {
  auto exact = reference::network_of<double>(network, weights);
  return exact.forward(reference::map_of<double>(images), std::nullopt).values;
}

/// The Euclidean distance of the values, relative to the expected ones.
inline double relative_error(const Array& found, const std::vector<double>& expected) {
  EXPECT_EQ(found.count(), std::ssize(expected));
  double off = 0, size = 0;
  for (int64_t i = 0; i < found.count(); ++i) {
    off += (found.floats()[i] - expected[i]) * (found.floats()[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(off / size);
}

}  // namespace fedsmooth
