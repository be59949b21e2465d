// Parts on one core: noise, the networks per image against the reference, and what the server does
// for a round.
#include <benchmark/benchmark.h>

#include "fedsmooth/base/random.h"
#include "fedsmooth/distributed/round_plan.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/federated/train.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32;
constexpr int64_t kImages = 256;

void fill_normal(benchmark::State& state) {
  Array out({kImages, kPixels});
  for (auto _ : state) {
    for (int64_t i = 0; i < kImages; ++i) {
      fedsmooth::fill_normal({Key{1}}, static_cast<uint32_t>(i), out[i].floats(), kPixels);
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages * kPixels);
}
BENCHMARK(fill_normal);

Array random_images(int64_t count) {
  Array images({count, 3, 32, 32});
  fill_uniform({Key{2}}, 0, images.floats(), images.count());
  return images;
}

Model named_model(const std::string& name) {
  ModelOptions options{name};
  set_default_normalization(options, "cifar10", 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  return {network, initial_weights(network, Key{1})};
}

void base_classifier_images(benchmark::State& state, const std::string& name) {
  const BaseClassifier f = base_classifier(named_model(name));
  const Classifier classify = f.make();
  const Array images = random_images(f.batch);
  for (auto _ : state) benchmark::DoNotOptimize(classify(images));
  state.SetItemsProcessed(state.iterations() * f.batch);
}
BENCHMARK_CAPTURE(base_classifier_images, alexnet, "alexnet");
BENCHMARK_CAPTURE(base_classifier_images, small, "small");

void reference_images(benchmark::State& state, const std::string& name) {
  const Model model = named_model(name);
  const std::unique_ptr<Passes> passes = reference_passes(model.network);
  passes->load(model.weights);
  const Array images = random_images(kImages);
  for (auto _ : state) benchmark::DoNotOptimize(passes->forward(images, std::nullopt));
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK_CAPTURE(reference_images, alexnet, "alexnet");
BENCHMARK_CAPTURE(reference_images, small, "small");

// A pass forwards and the gradients of the weights, as a client trains.
void training_images(benchmark::State& state, const MakePasses& make) {
  constexpr int64_t kBatch = 128;
  const Model model = named_model("alexnet");
  const std::unique_ptr<Passes> passes = make(model.network);
  passes->load(model.weights);
  const Array images = random_images(kBatch), gradient = Array::full({kBatch, 10}, 0.1f);
  for (auto _ : state) {
    passes->forward(images, Stream{Key{1}});
    benchmark::DoNotOptimize(passes->backward_to_weights(gradient));
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK_CAPTURE(training_images, fastest, fastest_passes);
BENCHMARK_CAPTURE(training_images, reference, reference_passes);

void lower_bound(benchmark::State& state) {
  int64_t k = 50'000;
  for (auto _ : state) {
    benchmark::DoNotOptimize(binomial_lower_bound(k, 100'000, 0.001));
    k = k == 100'000 ? 50'000 : k + 1;
  }
}
BENCHMARK(lower_bound);

// What rank 0 does alone in a round, per client of the cohort: 1,000 of a million clients on 100
// ranks.
void plan_a_round(benchmark::State& state) {
  constexpr int64_t kClients = 1000;
  std::vector<int64_t> labels(50'000);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 10);
  PartitionOptions options;
  options.clients = 1'000'000;
  const Partition partition(options, labels, 10, 0);
  const Model model = named_model("alexnet");
  const Dataset none;
  const LocalTask task{model.network, none};
  for (auto _ : state) {
    const std::vector<Round> rounds = {
        {task, model.weights, sample_cohort(partition, kClients, 0, 0)}};
    benchmark::DoNotOptimize(plan_rounds(rounds, 100));
  }
  state.SetItemsProcessed(state.iterations() * kClients);
}
BENCHMARK(plan_a_round);

// And per round: AlexNet's weights into the plan, and its sums to an average.
void format_a_plan(benchmark::State& state) {
  const Model model = named_model("alexnet");
  const std::vector<RoundAssignment> plan = {{0, 0, 1, {{0}}, model.weights}};
  for (auto _ : state) benchmark::DoNotOptimize(format_plan(plan));
}
BENCHMARK(format_a_plan);

void average_sums(benchmark::State& state) {
  const Model model = named_model("alexnet");
  const std::vector<Parameter> known = parameters(model.network);
  FixedPointSum sum;
  sum.add(model.weights, known, 1.0);
  for (auto _ : state) benchmark::DoNotOptimize(sum.average(model.weights, known));
}
BENCHMARK(average_sums);

}  // namespace
}  // namespace fedsmooth

BENCHMARK_MAIN();
