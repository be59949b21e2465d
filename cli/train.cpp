// fedsmooth train EXPERIMENT.toml: Algorithm 1, into a run folder.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "cli/subject.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/config/run.h"
#include "fedsmooth/engine/threaded_executor.h"
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
  Dataset train, test;
  Network network;
  PartitionOptions partition_options;
  std::unique_ptr<Partition> partition;

  explicit Training(const Experiment& e)
      : train(load_dataset(e.data, Split::kTrain)), partition_options(e.partition) {
    if (e.train.evaluate_every > 0) test = load_dataset(e.data, Split::kTest);
    ModelOptions model = e.model;
    set_default_normalization(model, e.data.name, train.images.size(1));
    network = build_network(model, image_shape(train), train.classes());
    if (e.train.mode == Mode::kCentralized) partition_options.kind = PartitionKind::kWhole;
    partition =
        std::make_unique<Partition>(partition_options, train.labels, train.classes(), e.seed);
  }
};

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

void finish_run(const Run& run, const Model& model, const Training& training, int threads,
                const std::string& started) {
  const std::string bytes = format_model(model);
  write_file(run.folder / "model.safetensors", bytes);
  const nlohmann::json provenance = {{"version", version()},
                                     {"commit", commit()},
                                     {"libtorch", torch_version()},
                                     {"device", "cpu"},
                                     {"threads", threads},
                                     {"started", started},
                                     {"finished", utc_now()},
                                     {"model_sha256", sha256(bytes)},
                                     {"data_sha256", digest(training.train)}};
  write_file(run.folder / "provenance.json", provenance.dump(2) + "\n");
  write_file(run.folder / "DONE", "");
}

int run_train(const Experiment& e, const fs::path& folder, bool resume, const Common& common) {
  const int threads = thread_count(common);
  const std::string started = utc_now();
  const Training training(e);
  TrainOptions options = e.train;
  if (options.mode == Mode::kCentralized) options.clients_per_round = 1;
  check_train_options(options, *training.partition);

  const Run run = start_run(folder, e, resume);
  if (run.done()) {
    if (!common.quiet) fmt::print("{}: done already\n", folder.string());
    return 0;
  }
  ServerState state =
      read_checkpoint(run, training.network)
          .value_or(ServerState{
              0, initial_weights(training.network, make_key(e.seed, Purpose::kWeights)), {}});
  const fs::path rounds = folder / "rounds.tsv";
  rewrite_rounds(rounds, state.round);
  const LocalTask task{training.network, training.train, e.data.augment, options.method,
                       e.smoothing,      e.attack,       options.local,  e.seed};
  const auto model = [&] {
    return Model{training.network, state.global, e.smoothing.sigma, training.train.class_names};
  };

  ThreadedExecutor executor(threads);
  Progress progress("train", state.round, options.rounds, common.quiet);
  auto last = std::chrono::steady_clock::now();
  train(task, options, *training.partition, executor, state,
        [&](const ServerState& now, const RoundReport& report) {
          RoundRow row{report.round,
                       report.telemetry.mean_loss(),
                       std::nullopt,
                       report.telemetry.mean_perturbation(),
                       report.telemetry.p95_perturbation(),
                       report.telemetry.mean_drop(),
                       report.telemetry.mean_cosine(),
                       report.dropped};
          if (options.evaluate_every > 0 && now.round % options.evaluate_every == 0) {
            row.noisy_accuracy = noisy_accuracy(model(), training.test, e.seed, threads);
          }
          const auto time = std::chrono::steady_clock::now();
          row.seconds = std::chrono::duration<double>(time - last).count();
          last = time;
          append_line(rounds, format_round(row));
          const bool stop = interrupted();
          if (stop || now.round % options.checkpoint_every == 0 || now.round == options.rounds) {
            write_checkpoint(run, training.network, now);
          }
          progress.step(fmt::format("loss {:.3f}", row.loss));
          return !stop;
        });
  if (state.round < options.rounds) {
    throw Interrupted{fmt::format("interrupted after round {} of {}; go on with --resume",
                                  state.round, options.rounds)};
  }
  finish_run(run, model(), training, threads, started);
  if (common.json) {
    const std::vector<RoundRow> rows = read_rounds(rounds);
    fmt::print("{}\n",
               nlohmann::json{{"run", folder.string()},
                              {"rounds", rows.size()},
                              {"loss", rows.empty() ? 0.0 : rows.back().loss},
                              {"model_sha256", sha256(read_file(folder / "model.safetensors"))}}
                   .dump());
  } else if (!common.quiet) {
    fmt::print("{}\n", folder.string());
  }
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Common& common) {
  struct Arguments {
    std::string experiment, out;
    bool resume = false;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "train", "train a classifier, federated or centralized, into a run folder",
            "  fedsmooth train experiments/quickstart/smoothadv.toml\n"
            "  fedsmooth train e.toml --out runs/e --train.method=gaussian --resume");
  c.argument("experiment", a->experiment, "experiment file");
  c.option("out", a->out, "run folder; runs/NAME for NAME.toml if left out");
  c.flag("resume", a->resume, "go on after the last checkpoint");
  c.on_run([a, &common](const Overrides& overrides) {
    Experiment experiment = read_experiment(a->experiment);
    apply_overrides(experiment, overrides);
    const fs::path out =
        a->out.empty() ? fs::path("runs") / fs::path(a->experiment).stem() : fs::path(a->out);
    return run_train(experiment, out, a->resume, common);
  });
}

}  // namespace fedsmooth::cli
