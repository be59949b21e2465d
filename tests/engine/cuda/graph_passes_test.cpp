// Graphs of family kRows, run in plain loops, against the reference: what a network is lowered to
// computes its logits and gradients. Needs no GPU.
#ifdef FEDSMOOTH_CUDA

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/cuda/plain_graph.h"
#include "tests/engine/cuda/wide_networks.h"
#include "tests/engine/passes.h"
#include "tests/engine/random_networks.h"

namespace fedsmooth {
namespace {

using Values = std::vector<double>;

// Relative to the largest value. A norm of single values has a gradient of zero, but for rounding.
double error_of(const Values& found, const Values& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double off = 0, size = 1e-3;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    off = std::max(off, std::isnan(found[i]) ? INFINITY : std::abs(found[i] - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  return off / size;
}

// Both are in double.
constexpr double kTolerance = 1e-9;

// Compares logits and the gradients of images and weights, in either mode.
void expect_same(const Model& model, const std::string& name) {
  const GpuGraph graph = make_graph(model.network, Family::kRows);
  const auto [c, h, w] = model.network.input;
  const Array images = uniform({3, c, h, w}, 5);
  for (const bool training : {false, true}) {
    auto reference = reference::network_of<double>(model.network, model.weights);
    PlainGraph plain(graph, model.weights);
    const auto mode = training ? std::optional<Stream>(Stream{Key{1}}) : std::nullopt;
    reference::Map<double> logits = reference.forward(reference::map_of<double>(images), mode);
    EXPECT_LT(error_of(plain.forward(images, mode), logits.values), kTolerance) << name;
    for (size_t i = 0; i < logits.values.size(); ++i) {
      logits.values[i] = std::sin(static_cast<double>(i + 1));
    }
    const Values of_images = plain.backward(logits.values);
    const auto gradients = reference.backward(logits);
    EXPECT_LT(error_of(of_images, gradients.images.values), kTolerance) << name;
    Values expected;
    for (size_t i = 0; i < gradients.weights.size(); ++i) {
      Values of_tensor = gradients.weights[i];
      of_tensor.resize(model.weights[i].count());  // zeros if it is not trained
      expected.insert(expected.end(), of_tensor.begin(), of_tensor.end());
    }
    EXPECT_LT(error_of(plain.weight_gradients(), expected), kTolerance) << name << " " << training;
  }
}

TEST(GraphPassesTest, AreThoseOfTheReference) {
  for (const auto& [name, network] : WideNetworks::all(/*side=*/6, /*first=*/24, /*second=*/40)) {
    ASSERT_EQ(graph_refusal(network, Family::kRows), "") << name;
    expect_same({network, drawn_weights(network)}, name);
  }
}

TEST(GraphPassesTest, OfWideNodesAreThoseOfTheReference) {
  for (const auto& [name, network] : WideNetworks::all(/*side=*/6, /*first=*/72, /*second=*/80)) {
    ASSERT_EQ(graph_refusal(network, Family::kRows), "") << name;
    expect_same({network, drawn_weights(network)}, name);
  }
}

// Networks with more than 400 pixels take too long in plain loops.
TEST(GraphPassesTest, OfRandomNetworksAreThoseOfTheReference) {
  int compared = 0;
  for (uint64_t i = 0; i < 1500; ++i) {
    Model model = RandomNetwork(i).draw();
    if (model.network.input[1] * model.network.input[2] > 50) continue;
    if (!graph_refusal(model.network, Family::kRows).empty()) continue;
    ++compared;
    // As float32, in which a graph has them, exactly.
    std::ranges::fill(model.network.layers[0].mean, 0.5);
    std::ranges::fill(model.network.layers[0].sd, 0.25);
    expect_same(model, fmt::format("network {}", i));
  }
  fmt::print("{} networks\n", compared);
  EXPECT_GE(compared, 50);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(GraphPassesTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
