// Engines against the reference in double, in plain loops, on networks that nobody thought of.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/engine/cpu/fast_network.h"
#include "fedsmooth/engine/cpu/lane_network.h"
#include "fedsmooth/model/fold.h"
#include "tests/engine/passes.h"
#include "tests/engine/random_networks.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/device_gradients.h"
#include "fedsmooth/engine/cuda/device_network.h"
#include "fedsmooth/engine/cuda/pair_lists.h"
#include "fedsmooth/engine/gpu.h"
#endif

namespace fedsmooth {
namespace {

constexpr uint64_t kNetworks = 3000, kPoisonedOneIn = 30;

// Up to 15 products of at most 32 x 49 terms each: errors that add like a random walk, within a
// sum and from layer to layer, are 2^-24 sqrt(1568) sqrt(15) = 9e-6 of the largest value, and ten
// times that for the schemes that form differences.
constexpr double kTolerance = 1e-4;

// In training a norm divides by the deviation of a batch, which may be as small as sqrt(1e-5): a
// channel that hardly varies multiplies errors by up to 300, and few do.
constexpr double kTrainingTolerance = 1e-3;

struct Case {
  Model model;
  Array images;
  bool poisoned = false;

  explicit Case(uint64_t number) : model(RandomNetwork(number).draw()) {
    const auto [c, h, w] = model.network.input;
    const int64_t batches[] = {2, 3, 17};  // fewer and more than a vector has lanes
    images = uniform({batches[number % 3], c, h, w}, number);
    poisoned = number % kPoisonedOneIn == 0 && poison(number);
  }

 private:
  // Puts NaN or an infinity into a bias, a norm or a linear layer. Kernels stay as they are: what
  // one of their values does where it meets nothing but padding is not defined.
  bool poison(uint64_t number) {
    Draws draws({make_key(number, Purpose::kProbe)});
    std::vector<Array*> targets;
    for (Array& w : model.weights) {
      if (w.axes() < 4) targets.push_back(&w);
    }
    if (targets.empty()) return false;
    Array& target = *targets[draws.below(std::ssize(targets))];
    const float bad[] = {NAN, INFINITY, -INFINITY};
    target.floats()[draws.below(target.count())] = bad[draws.below(3)];
    return true;
  }
};

// How far an engine's logits are from the exact ones, relative to the largest. Where those are not
// finite, the engine's must not be either: such votes count for nobody. Infinity if it is not so.
double error_of(const Array& found, const std::vector<double>& exact) {
  if (found.count() != std::ssize(exact)) return INFINITY;
  double off = 0, largest = 0;
  for (int64_t i = 0; i < found.count(); ++i) {
    const double value = found.floats()[i];
    if (std::isfinite(value) != std::isfinite(exact[i])) return INFINITY;
    if (!std::isfinite(value)) continue;
    off = std::max(off, std::abs(value - exact[i]));
    largest = std::max(largest, std::abs(exact[i]));
  }
  return off == 0 ? 0 : off / largest;
}

std::vector<double> exact_logits(const Case& of, const std::optional<Stream>& training) {
  auto exact = reference::network_of<double>(of.model.network, of.model.weights);
  return exact.forward(reference::map_of<double>(of.images), training).values;
}

Array logits_of(Passes& passes, const Case& of, const std::optional<Stream>& training) {
  passes.load(of.model.weights);
  return passes.forward(of.images, training);
}

Array fast_logits(const Model& model, const Array& images) {
  return FastNetwork(model.network, model.weights, images.size(0))(images);
}

// What became of one network; an error below zero: the engine refused it.
struct Outcome {
  double reference = -1, fast = -1, folded = -1, lanes = -1;
  double reference_training = -1, lanes_training = -1;
  bool poisoned = false;
};

Outcome compare(uint64_t number) {
  const Case of(number);
  const Network& network = of.model.network;
  Outcome found;
  const std::vector<double> exact = exact_logits(of, std::nullopt);
  found.poisoned =
      of.poisoned && !std::ranges::all_of(exact, [](double v) { return std::isfinite(v); });
  const auto reference = reference_passes(network);
  found.reference = error_of(logits_of(*reference, of, std::nullopt), exact);
  if (FastNetwork::refusal(network).empty()) {
    found.fast = error_of(fast_logits(of.model, of.images), exact);
  }
  const Model folded = fold_batch_norm(of.model);
  if (FastNetwork::refusal(folded.network).empty()) {
    found.folded = error_of(fast_logits(folded, of.images), exact);
  }
  const bool lanes = lanes_refusal(network).empty();
  if (lanes) found.lanes = error_of(logits_of(*lane_passes(network), of, std::nullopt), exact);
  if (of.poisoned) return found;
  const Stream training{make_key(number, Purpose::kDropout)};
  const std::vector<double> trained = exact_logits(of, training);
  found.reference_training = error_of(logits_of(*reference, of, training), trained);
  if (lanes)
    found.lanes_training = error_of(logits_of(*lane_passes(network), of, training), trained);
  return found;
}

std::vector<Outcome> compare_all() {
  std::vector<Outcome> outcomes(kNetworks);
  std::atomic<uint64_t> next = 0;
  Workers(available_cores()).run([&](int) {
    for (uint64_t i = next++; i < kNetworks; i = next++) outcomes[i] = compare(i);
  });
  return outcomes;
}

void expect_close(const std::vector<Outcome>& outcomes, double Outcome::*error,
                  const std::string& engine, double tolerance, int least) {
  int accepted = 0, poisoned = 0;
  double worst = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const double found = outcomes[i].*error;
    if (found < 0) continue;
    ++accepted;
    poisoned += outcomes[i].poisoned;
    worst = std::max(worst, found);
    EXPECT_LE(found, tolerance) << engine << ", network " << i;
  }
  fmt::print("{}: {} networks, {} with logits that are not finite, largest error {:.1e}\n", engine,
             accepted, poisoned, worst);
  EXPECT_GE(accepted, least) << engine;
}

TEST(SlowRandomNetworksTest, EveryEvaluatorOnTheCpuGivesTheReferencesLogits) {
  const std::vector<Outcome> all = compare_all();
  expect_close(all, &Outcome::reference, "reference", kTolerance, 3000);
  expect_close(all, &Outcome::fast, "fast", kTolerance, 1000);
  expect_close(all, &Outcome::folded, "fast, folded", kTolerance, 1000);
  expect_close(all, &Outcome::lanes, "lanes", kTolerance, 1000);
  expect_close(all, &Outcome::reference_training, "reference, training", kTrainingTolerance, 2000);
  expect_close(all, &Outcome::lanes_training, "lanes, training", kTrainingTolerance, 1000);
}

#ifdef FEDSMOOTH_CUDA
// In float32. Both ways to run a network there have to see some.
TEST(SlowRandomNetworksTest, TheGpuGivesTheReferencesLogits) {
  const std::string missing = gpu_unavailable_reason();
  if (!missing.empty()) GTEST_SKIP() << missing;
  select_gpu();
  int chains = 0, graphs = 0;
  for (uint64_t i = 0; i < kNetworks; ++i) {
    const Case of(i);
    const Model folded = fold_batch_norm(of.model);
    if (of.poisoned || !network_refusal(folded.network).empty()) continue;
    ++(graph_refusal(folded.network, Family::kPairs).empty() ? chains : graphs);
    const DifferentiableClassifier f = device_gradients(folded, Precision::kFloat32)();
    EXPECT_LE(error_of(f.logits(of.images), exact_logits(of, std::nullopt)), kTolerance)
        << "network " << i;
  }
  fmt::print("GPU: {} chains, {} graphs\n", chains, graphs);
  EXPECT_GE(chains, 100);
  EXPECT_GE(graphs, 20);
}
#else
TEST(SlowRandomNetworksTest, TheGpuGivesTheReferencesLogits) {
  GTEST_SKIP() << "built without nvcc";
}
#endif

}  // namespace
}  // namespace fedsmooth
