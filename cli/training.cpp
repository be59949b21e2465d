#include "cli/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/clients.h"
#include "cli/progress.h"
#include "cli/subject.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/config/run.h"
#include "fedsmooth/engine/executors.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/report/rounds.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEvaluatedImages = 200;
constexpr int64_t kEvaluationVotes = 128;

// Share of a test subset on which most noisy votes are right.
double noisy_accuracy(const Model& model, const Dataset& test, uint64_t seed, int threads) {
  ThreadedSampler sampler(base_classifier(model), threads);
  const int64_t count = std::min(test.size(), kEvaluatedImages);
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t image = i * test.size() / count;
    const Votes votes =
        sampler.count(test.image(image), model.sigma, kEvaluationVotes,
                      {make_key(seed, Purpose::kEvaluation), static_cast<uint32_t>(image)});
    right += std::max_element(votes.begin(), votes.end()) - votes.begin() == test.label(image);
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

// Everything that a training needs, put together from the experiment.
struct Training {
  const Experiment& experiment;
  int threads;
  Dataset train, test;
  Network network;
  Partition partition;
  TrainOptions options;

  Training(const Experiment& e, int thread_count)
      : experiment(e),
        threads(thread_count),
        train(load_dataset(e.data, Split::kTrain)),
        partition(make_partition(e, train)),
        options(e.train) {
    if (options.evaluate_every > 0) test = load_dataset(e.data, Split::kTest);
    ModelOptions model = e.model;
    set_default_normalization(model, e.data.name, train.images.size(1));
    network = build_network(model, image_shape(train), train.classes());
    if (options.mode == Mode::kCentralized) options.clients_per_round = 1;
    check_train_options(options, e.attack, partition);
  }

  Model model(const ServerState& state) const {
    return {network, state.global, experiment.smoothing.sigma, train.class_names};
  }

  bool evaluates(int64_t round) const {
    return options.evaluate_every > 0 && round % options.evaluate_every == 0;
  }
};

ServerState starting_state(const Run& run, const Network& network, const std::string& device) {
  if (std::optional<ServerState> saved = read_checkpoint(run, network, device)) return *saved;
  return {0, initial_weights(network, make_key(run.experiment.seed, Purpose::kWeights)), {}};
}

// Rows up to the checkpoint stay; later ones belong to rounds that will be done again.
void rewrite_rounds(const fs::path& path, int64_t last) {
  std::string text = round_header();
  if (fs::exists(path)) {
    for (const RoundRow& row : read_rounds(path)) {
      if (row.round <= last) text += format_round(row);
    }
  }
  write_file(path, text);
}

void append_line(const fs::path& path, const std::string& line) {
  std::ofstream out(path, std::ios::app);
  out << line << std::flush;
  if (!out)
    throw Error("{}: cannot be written; go on by --resume when there is room", path.string());
}

RoundRow describe(const RoundReport& report) {
  const Telemetry& t = report.telemetry;
  return {report.round,         t.mean_loss(), std::nullopt,    t.mean_perturbation(),
          t.p95_perturbation(), t.mean_drop(), t.mean_cosine(), report.dropped};
}

// The rounds that are left, or those until the user asks to stop.
void train_rounds(const Training& training, const ChosenExecutor& chosen, const Run& run,
                  ServerState& state, bool quiet) {
  const Experiment& e = training.experiment;
  const TrainOptions& options = training.options;
  const LocalTask task{training.network, training.train, e.data.augment, options.method,
                       e.smoothing,      e.attack,       options.local,  e.seed};
  Progress progress("train", state.round, options.rounds, quiet);
  auto last = std::chrono::steady_clock::now();
  const auto on_round = [&](const ServerState& now, const RoundReport& report) {
    RoundRow row = describe(report);
    if (training.evaluates(now.round)) {
      row.noisy_accuracy =
          noisy_accuracy(training.model(now), training.test, e.seed, training.threads);
    }
    const auto time = std::chrono::steady_clock::now();
    row.seconds = std::chrono::duration<double>(time - last).count();
    last = time;
    append_line(run.folder / "rounds.tsv", format_round(row));
    const bool stop = interrupted();
    if (stop || now.round % options.checkpoint_every == 0 || now.round == options.rounds) {
      write_checkpoint(run, training.network, now, chosen.device);
    }
    progress.step(fmt::format("loss {:.3f}", row.loss));
    return !stop;
  };
  train(task, options, training.partition, *chosen.executor, state, on_round);
}

void finish_run(const Run& run, const Training& training, const ServerState& state,
                const std::string& device, const std::string& started) {
  const std::string bytes = format_model(training.model(state));
  write_file(run.folder / "model.safetensors", bytes);
  const nlohmann::json provenance = {{"version", version()},
                                     {"commit", commit()},
                                     {"libtorch", torch_version()},
                                     {"device", device},
                                     {"threads", training.threads},
                                     {"started", started},
                                     {"finished", utc_now()},
                                     {"model_sha256", sha256(bytes)},
                                     {"data_sha256", digest(training.train)}};
  write_file(run.folder / "provenance.json", provenance.dump(2) + "\n");
  write_file(run.folder / "DONE", "");
}

}  // namespace

bool train_run(const Experiment& e, const fs::path& folder, bool resume, const Common& common) {
  const int threads = thread_count(common);
  if (fs::exists(folder / "DONE")) {
    start_run(folder, e, resume);  // refuses another experiment
    return false;
  }
  const std::string started = utc_now();
  const Training training(e, threads);
  const ChosenExecutor chosen = choose_executor(common.device, threads, training.network);
  const Run run = start_run(folder, e, resume);
  write_file(folder / "clients.tsv",
             format_clients(list_clients(training.partition, training.train)));
  ServerState state = starting_state(run, training.network, chosen.device);
  rewrite_rounds(folder / "rounds.tsv", state.round);
  train_rounds(training, chosen, run, state, common.quiet);
  if (state.round < e.train.rounds) {
    throw Interrupted{fmt::format("interrupted after round {} of {}; go on with --resume",
                                  state.round, e.train.rounds)};
  }
  finish_run(run, training, state, chosen.device, started);
  return true;
}

}  // namespace fedsmooth::cli
