// fedsmooth bench certify [EXPERIMENT.toml]: throughput of this build on this machine, as JSON.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/engine/base_classifier.h"
#include "fedsmooth/engine/threaded_sampler.h"

namespace fedsmooth::cli {
namespace {

constexpr int kRepeats = 5;
constexpr double kSecondsPerRepeat = 1.0;

double seconds_for(Sampler& sampler, const Tensor& image, double sigma, int64_t n) {
  const auto start = std::chrono::steady_clock::now();
  sampler.count(image, sigma, n, {make_key(0, Purpose::kProbe)});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Votes per second for an untrained network: the time does not depend on the weights.
int bench_certify(const Experiment& experiment, const Common& common) {
  const int threads = thread_count(common);
  ModelOptions options = experiment.model;
  set_default_normalization(options, experiment.data.name, 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  const BaseClassifier f =
      base_classifier(Model{network, initial_weights(network, make_key(0, Purpose::kWeights))});
  ThreadedSampler sampler(f, threads);
  const Tensor image = at::full({3, 32, 32}, 0.5);
  const double sigma = experiment.smoothing.sigma;

  const int64_t warm_up = 4 * f.batch * threads;
  seconds_for(sampler, image, sigma, warm_up);
  const double rate = static_cast<double>(warm_up) / seconds_for(sampler, image, sigma, warm_up);
  const int64_t n = std::max(warm_up, static_cast<int64_t>(rate * kSecondsPerRepeat));
  std::vector<double> rates;
  for (int i = 0; i < kRepeats; ++i) {
    rates.push_back(static_cast<double>(n) / seconds_for(sampler, image, sigma, n));
  }
  std::sort(rates.begin(), rates.end());
  const double median = rates[kRepeats / 2];
  const int64_t votes = experiment.certify.n0 + experiment.certify.n;
  const nlohmann::json result = {{"bench", "certify"},
                                 {"model", network.name},
                                 {"weights", count_weights(network)},
                                 {"base", f.description},
                                 {"threads", threads},
                                 {"samples_per_second", median},
                                 {"slowest", rates.front()},
                                 {"fastest", rates.back()},
                                 {"seconds_per_certificate", static_cast<double>(votes) / median},
                                 {"version", version()},
                                 {"commit", commit()}};
  fmt::print("{}\n", result.dump());
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Common& common) {
  struct Arguments {
    std::string what, path;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "bench", "throughput of this build on this machine, as JSON",
            "  fedsmooth bench certify\n"
            "  fedsmooth bench certify --model.name=resnet20 --threads 1");
  c.argument("what", a->what, "certify");
  c.argument("experiment", a->path, "experiment file", /*required=*/false);
  c.on_run([a, &common](const Overrides& overrides) {
    if (a->what != "certify") throw Error("bench {}: there is only certify", a->what);
    Experiment experiment = a->path.empty() ? Experiment{} : read_experiment(a->path);
    apply_overrides(experiment, overrides);
    return bench_certify(experiment, common);
  });
}

}  // namespace fedsmooth::cli
