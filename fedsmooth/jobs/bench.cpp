#include "fedsmooth/jobs/bench.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/engine/executors.h"
#include "fedsmooth/engine/samplers.h"

namespace fedsmooth::jobs {
namespace {

constexpr double kSecondsPerRepeat = 1.0;
constexpr int64_t kClientsPerThread = 2;

// Times `votes` votes, at most certify.n for each image.
double seconds_for(Sampler& sampler, const Experiment& e, int64_t votes) {
  std::vector<VoteRequest> requests;
  for (uint32_t image = 0; votes > 0; ++image) {
    const int64_t n = std::min(votes, e.certify.n);
    const Stream stream = {make_key(0, Purpose::kProbe), image};
    const Array grey = Array::full({3, 32, 32}, 128.0f / 255);
    requests.push_back({grey, e.smoothing.sigma, n, stream});
    votes -= n;
  }
  const auto start = std::chrono::steady_clock::now();
  sampler.count_all(requests);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Makes `count` random images. The time of a step does not depend on their pixels.
Dataset random_images(int64_t count, const Shape& shape, int64_t classes) {
  Dataset data{Array({count, shape[0], shape[1], shape[2]}, Array::Type::kByte), {}, {}};
  std::vector<float> pixels(data.images.count());
  fill_uniform({make_key(0, Purpose::kProbe)}, 0, pixels.data(), std::ssize(pixels));
  for (size_t i = 0; i < pixels.size(); ++i) {
    data.images.bytes()[i] = static_cast<uint8_t>(pixels[i] * 255);
  }
  for (int64_t i = 0; i < count; ++i) data.labels.push_back(i % classes);
  for (int64_t c = 0; c < classes; ++c) data.class_names.push_back(std::to_string(c));
  return data;
}

// Returns the time of each part of a local step, and the rate it reaches if its work is known.
nlohmann::json describe_phases(const std::map<std::string, PhaseCost>& phases) {
  double all = 0;
  for (const auto& [name, cost] : phases) all += cost.seconds;
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, cost] : phases) {
    out[name] = {{"seconds", cost.seconds}, {"share", cost.seconds / all}};
    if (cost.operations > 0) out[name]["tflops"] = cost.operations / cost.seconds / 1e12;
    if (cost.bytes > 0) out[name]["gb_per_second"] = cost.bytes / cost.seconds / 1e9;
  }
  return out;
}

void refuse_groups(const Experiment& e) {
  if (!e.groups.are_trained()) return;
  throw Error(
      "groups.count={}: bench measures one network; benchmarks/groups.py measures several groups",
      e.groups.count);
}

}  // namespace

nlohmann::json bench_certify(const Experiment& experiment, const Context& context) {
  refuse_groups(experiment);
  const int threads = thread_count(context);
  ModelOptions options = experiment.model;
  set_default_normalization(options, experiment.data.name, 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  const NoiseLaw& law = *experiment.certify.noise;
  const Model model = {network, initial_weights(network, make_key(0, Purpose::kWeights)), 0.0, {}};
  const BaseClassifier f = choose_classifier(context.device, model, law);
  const std::unique_ptr<Sampler> sampler = make_sampler(f, law, threads);

  const int64_t warm_up = f.sampler ? experiment.certify.n : 4 * f.batch * threads;
  seconds_for(*sampler, experiment, warm_up);
  const double rate = static_cast<double>(warm_up) / seconds_for(*sampler, experiment, warm_up);
  const int64_t n = std::max(warm_up, static_cast<int64_t>(rate * kSecondsPerRepeat));
  std::vector<double> rates;
  for (int i = 0; i < kBenchRepeats; ++i) {
    rates.push_back(static_cast<double>(n) / seconds_for(*sampler, experiment, n));
  }
  std::sort(rates.begin(), rates.end());
  const double median = rates[kBenchRepeats / 2];
  const int64_t votes = experiment.certify.n0 + experiment.certify.n;
  return {{"bench", "certify"},
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
}

nlohmann::json bench_train(const Experiment& e, const Context& context) {
  refuse_groups(e);
  return time_rounds(e, context, kBenchRepeats, {{3, 32, 32}, 10});
}

nlohmann::json time_rounds(const Experiment& e, const Context& context, int repeats,
                           const ImageKind& kind) {
  const int threads = thread_count(context);
  const int64_t samples = e.partition.samples_per_client;
  ModelOptions options = e.model;
  set_default_normalization(options, e.data.name, kind.input[0]);
  const Network network = build_network(options, kind.input, kind.classes);
  const Dataset data = random_images(samples, kind.input, kind.classes);
  const Weights weights = initial_weights(network, make_key(0, Purpose::kWeights));
  LocalTask task{network,  data,          e.data.augment, e.train.method, e.smoothing,
                 e.attack, e.train.local, e.seed,         e.objective};
  // The task is that of the last round, with every table that an objective may read.
  task.progress = static_cast<double>(e.train.rounds - 1) / static_cast<double>(e.train.rounds);
  task.teacher = Array::full({samples, kind.classes}, 1.0f / static_cast<float>(kind.classes));
  task.image_weights = Array::full({samples}, 1.0f);

  const ChosenExecutor chosen = choose_executor(context.device, threads, network);
  const bool on_cpu = chosen.device == "cpu";
  const int64_t per_round = e.train.mode == Mode::kCentralized ? 1 : e.train.clients_per_round;
  const int64_t clients = on_cpu ? std::min(per_round, kClientsPerThread * threads) : per_round;
  Cohort cohort;
  for (int64_t k = 0; k < clients; ++k) {
    cohort.clients.push_back(k);
    cohort.images.push_back(std::vector<int64_t>(samples));
    std::iota(cohort.images.back().begin(), cohort.images.back().end(), int64_t{0});
    cohort.total += samples;
  }
  std::vector<double> seconds;
  for (int64_t t = 0; t <= repeats; ++t) {
    // The first round warms up. On a GPU it must have all steps, because the captured graph depends
    // on their number.
    task.local.steps = t == 0 && on_cpu ? 1 : e.train.local.steps;
    const auto start = std::chrono::steady_clock::now();
    run_round(*chosen.executor, {task, weights, cohort, t});
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    const auto steps =
        static_cast<double>(cohort.clients.size()) * static_cast<double>(task.local.steps);
    if (t > 0) seconds.push_back(spent.count() / steps);
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[repeats / 2];
  const auto run_steps = static_cast<double>(e.train.rounds * per_round * e.train.local.steps);
  return {{"bench", "train"},
          {"model", network.name},
          {"device", chosen.device},
          {"threads", threads},
          {"clients", cohort.clients.size()},
          {"passes", passes_of(task)},
          {"seconds_per_client_step", median},
          {"fastest", seconds.front()},
          {"slowest", seconds.back()},
          {"seconds_per_run", median * run_steps},
          {"phases", describe_phases(chosen.executor->measure_step({task, weights, cohort, 0}))},
          {"version", version()},
          {"commit", commit()}};
}

}  // namespace fedsmooth::jobs
