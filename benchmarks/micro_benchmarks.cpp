// Parts on one core: noise against at::randn, the networks per image, and what the server does for
// a round.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/random.h"
#include "fedsmooth/distributed/round_plan.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32;
constexpr int64_t kImages = 256;

void fill_normal(benchmark::State& state) {
  Tensor out = at::empty({kImages, kPixels});
  for (auto _ : state) {
    for (int64_t i = 0; i < kImages; ++i) {
      fedsmooth::fill_normal({Key{1}}, static_cast<uint32_t>(i), out[i].data_ptr<float>(), kPixels);
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages * kPixels);
}
BENCHMARK(fill_normal);

void at_randn(benchmark::State& state) {
  Tensor out = at::empty({kImages, kPixels});
  for (auto _ : state) out.normal_();
  state.SetItemsProcessed(state.iterations() * kImages * kPixels);
}
BENCHMARK(at_randn);

Model named_model(const std::string& name) {
  ModelOptions options{name};
  set_default_normalization(options, "cifar10", 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  return {network, initial_weights(network, Key{1})};
}

void base_classifier_images(benchmark::State& state, const std::string& name) {
  c10::NoGradGuard no_grad;
  const BaseClassifier f = base_classifier(named_model(name));
  const Classifier classify = f.make();
  const Tensor images = at::rand({f.batch, 3, 32, 32});
  for (auto _ : state) benchmark::DoNotOptimize(classify(images));
  state.SetItemsProcessed(state.iterations() * f.batch);
}
BENCHMARK_CAPTURE(base_classifier_images, alexnet, "alexnet");
BENCHMARK_CAPTURE(base_classifier_images, small, "small");

void libtorch_images(benchmark::State& state, const std::string& name) {
  c10::NoGradGuard no_grad;
  const Model model = named_model(name);
  const Tensor images = at::rand({kImages, 3, 32, 32});
  for (auto _ : state) {
    benchmark::DoNotOptimize(forward(model.network, model.weights, images));
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK_CAPTURE(libtorch_images, alexnet, "alexnet");
BENCHMARK_CAPTURE(libtorch_images, small, "small");

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
  const Tensor labels = at::arange(50'000).remainder(10);
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
  const std::vector<PlannedRound> plan = {{0, 0, 1, {{0}}, model.weights}};
  for (auto _ : state) benchmark::DoNotOptimize(format_plan(plan));
}
BENCHMARK(format_a_plan);

void average_sums(benchmark::State& state) {
  const Model model = named_model("alexnet");
  FixedPointSum sum;
  sum.add(model.weights, 1.0);
  for (auto _ : state) benchmark::DoNotOptimize(sum.average(model.weights));
}
BENCHMARK(average_sums);

}  // namespace
}  // namespace fedsmooth

int main(int argc, char** argv) {
  fedsmooth::use_single_threaded_operators();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
