#include "fedsmooth/jobs/training/open_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/distributed/remote_executor.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/jobs/pages/tensorboard.h"
#include "fedsmooth/jobs/training/clients.h"
#include "fedsmooth/jobs/training/noisy_answers.h"
#include "fedsmooth/jobs/training/teacher.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

constexpr double kAlmostNoNoise = 1e-6;
constexpr size_t kMostNamed = 5;  // dropped updates that a warning names

Network network_for(const Experiment& e, const Dataset& train) {
  ModelOptions model = e.model;
  set_default_normalization(model, e.data.name, train.images.size(1));
  return build_network(model, image_shape(train), train.classes());
}

bool images_are_elsewhere(const TrainArguments& run) {
  return run.federation != nullptr && !run.federation->images.empty();
}

// Loads the training set; only its class names if the clients' images are elsewhere.
Dataset load_train(const TrainArguments& run) {
  if (!images_are_elsewhere(run)) return load_dataset(run.experiment.data, Split::kTrain);
  return {{}, {}, load_dataset(run.experiment.data, Split::kTest).class_names};
}

// Loads the test set if this rank needs it; else returns an empty one.
Dataset load_test(const std::vector<TrainArguments>& runs, const Context& context) {
  const bool needed = std::any_of(runs.begin(), runs.end(), [](const TrainArguments& run) {
    return run.experiment.train.evaluate_every > 0 || images_are_elsewhere(run);
  });
  if (!needed || !ranks_of(context).leads()) return {};
  return load_dataset(runs.front().experiment.data, Split::kTest);
}

AskedRound describe(const Round& round) {
  const LocalTask& task = round.task;
  AskedRound asked{round.t,
                   round.cohort.total,
                   round.cohort.clients,
                   {},
                   {task.network, round.global, task.smoothing.sigma, task.data.class_names}};
  for (size_t i = 0; i < asked.clients.size(); ++i) {
    asked.shares.push_back(round.cohort.share(i));
  }
  return asked;
}

ChosenExecutor hand_out_rounds(const Federation& federation) {
  const auto ask = [f = federation.ask](const std::vector<Round>& rounds) {
    std::vector<AskedRound> asked;
    for (const Round& round : rounds) asked.push_back(describe(round));
    return f(asked);
  };
  return {std::make_unique<RemoteExecutor>(ask), federation.device};
}

// Throws an Error for options that nodes cannot follow, given what they are sent.
void check_for_nodes(const TrainOptions& options, bool own_images) {
  const Objective& objective = objective_of(options.method);
  if (reads(objective, "teacher") || objective.table != nullptr) {
    throw Error("train.method={:?}: nodes elsewhere do not have its tables of images",
                objective.name);
  }
  if (own_images && options.byzantine.any()) {
    throw Error("byzantine.{}: nodes with images of their own are not made bad",
                options.byzantine.share > 0 ? "share" : "clients");
  }
}

void check_run(const TrainingContext& setting, const TrainArguments& a, const TrainOptions& options,
               const Partition& partition) {
  check_train_options(options, a.experiment.attack, partition);
  check_objective(options.method, a.experiment.objective);
  if (a.federation) check_for_nodes(options, images_are_elsewhere(a));
  const Weights none;
  const auto why =
      setting.chosen.executor->unsupported({local_task(setting, a.experiment), none, {}, 0});
  if (why) throw Error("{}", *why);
}

std::unique_ptr<FolderLock> take_folder(const TrainingContext& setting, const TrainArguments& a,
                                        const TrainOptions& options, const Partition& partition) {
  check_run(setting, a, options, partition);
  fs::create_directories(a.folder);
  return std::make_unique<FolderLock>(a.folder);
}

// Keeps the rows up to the checkpoint's round; the rounds of later rows will be done again. A row
// is written before its round's checkpoint, so a table that lacks one is of another run.
std::vector<RoundRow> keep_rounds(const fs::path& path, int64_t last) {
  std::vector<RoundRow> rows;
  if (fs::exists(path)) rows = read_rounds(path);
  std::erase_if(rows, [&](const RoundRow& row) { return row.round > last; });
  for (int64_t round = 1; round <= last; ++round) {
    if (round <= std::ssize(rows) && rows[round - 1].round == round) continue;
    throw Error(
        "{}: has no row of round {}, the checkpoint is of round {}; bring back the table of this "
        "run, or start again with another --out",
        path.string(), round, last);
  }
  std::string text = round_header();
  for (const RoundRow& row : rows) text += format_round(row);
  write_file(path, text);
  return rows;
}

void append_line(const fs::path& path, const std::string& line) {
  std::ofstream out(path, std::ios::app);
  out << line << std::flush;
  if (!out)
    throw Error("{}: cannot be written; continue with --resume when there is room", path.string());
}

RoundRow describe(const RoundReport& report, Method method) {
  const Telemetry& t = report.telemetry;
  RoundRow row = {report.round,         t.mean_loss(), std::nullopt,    t.mean_perturbation(),
                  t.p95_perturbation(), t.mean_drop(), t.mean_cosine(), report.dropped};
  const Objective& objective = objective_of(method);
  if (reads(objective, "lambda")) row.loss_robust = t.mean_robust();
  if (reads(objective, "eta")) row.loss_entropy = t.mean_entropy();
  return row;
}

}  // namespace

TrainingContext::TrainingContext(const std::vector<TrainArguments>& runs, const Context& context)
    : TrainingContext(runs.front().experiment, runs.front().federation, load_train(runs.front()),
                      load_test(runs, context), context) {}

TrainingContext::TrainingContext(const Experiment& experiment, Dataset own, const Context& context)
    : TrainingContext(experiment, nullptr, std::move(own), {}, context) {}

TrainingContext::TrainingContext(const Experiment& e, const Federation* federation,
                                 Dataset given_train, Dataset given_test, const Context& context)
    : started(utc_now()),
      stopped(context.stopped),
      ranks(ranks_of(context).size()),
      threads(thread_count(context)),
      device(context.device),
      images_elsewhere(federation ? federation->images : std::vector<int64_t>()),
      train(std::move(given_train)),
      test(std::move(given_test)),
      train_digest(std::async(std::launch::async,
                              [this] {
                                if (images_elsewhere.empty()) return digest(train);
                                return sha256(fmt::format("{}", fmt::join(images_elsewhere, " ")));
                              })),
      network(network_for(e, images_elsewhere.empty() ? train : test)),
      chosen(federation ? hand_out_rounds(*federation)
                        : choose_executor(context.device, threads, network)),
      arithmetic(federation ? federation->arithmetic : cpu_arithmetic()) {}

Partition partition_of(const TrainingContext& setting, const Experiment& experiment) {
  if (setting.images_elsewhere.empty()) return make_partition(experiment, setting.train);
  std::vector<std::vector<int64_t>> images;
  for (const int64_t count : setting.images_elsewhere) images.emplace_back(count);
  Partition partition(std::move(images), experiment.seed);
  if (experiment.groups.number > 0) partition.take_group(experiment.groups);
  return partition;
}

LocalTask local_task(const TrainingContext& setting, const Experiment& e) {
  return {setting.network, setting.train, e.data.augment, e.train.method, e.smoothing,
          e.attack,        e.train.local, e.seed,         e.objective};
}

TrainOptions train_options(const TrainingContext& setting, const Experiment& e) {
  TrainOptions options = e.train;
  options.aggregate.threads = setting.threads;
  if (options.mode == Mode::kCentralized) options.clients_per_round = 1;
  return options;
}

void check_run(const TrainingContext& setting, const TrainArguments& a) {
  check_run(setting, a, train_options(setting, a.experiment), partition_of(setting, a.experiment));
}

OpenRun::OpenRun(const TrainingContext& setting, const TrainArguments& a, int64_t number)
    : setting_(setting),
      experiment_(a.experiment),
      number_(number),
      partition_(partition_of(setting, a.experiment)),
      options_(train_options(setting, a.experiment)),
      partition_sha256_(a.experiment.partition.kind == PartitionKind::kFile
                            ? sha256(read_file(a.experiment.partition.file))
                            : ""),
      lock_(take_folder(setting, a, options_, partition_)),
      run_(start_run(a.folder, a.experiment, a.resume)),
      checkpoints_(
          run_, setting.network, [this] { return origin(); }, setting.stopped, setting.ranks > 1) {
  remove_unfinished(a.folder,
                    {"experiment.toml", "clients.tsv", "rounds.tsv", "model.safetensors",
                     "provenance.json", "teacher.safetensors", "images.safetensors", "DONE"});
  remove_unfinished(a.folder / "checkpoint", {"state.safetensors"});
  if (setting.images_elsewhere.empty()) {  // otherwise the clients' labels are unknown here
    write_file(run_.folder / "clients.tsv",
               format_clients(list_clients(partition_, setting.train)));
  }
  if (has_checkpoint(run_)) {
    state_ = read_checkpoint(run_, setting.network, origin());
  } else {
    state_.global =
        initial_weights(setting.network, make_key(a.experiment.seed, Purpose::kWeights));
  }
  const std::vector<RoundRow> kept = keep_rounds(run_.folder / "rounds.tsv", state_.round);
  if (a.experiment.log.tensorboard) begin_round_events(run_.folder, kept);
  const Objective& objective = objective_of(options_.method);
  if (reads(objective, "teacher")) {
    teacher_ = teacher_votes(setting, experiment_, partition_, run_.folder);
  }
  if (objective.table != nullptr) image_tables_.emplace(setting, experiment_, run_.folder);
}

Provenance OpenRun::origin() const {
  Provenance origin = {{"device", setting_.chosen.device},
                       {"data_sha256", setting_.train_digest.get()}};
  if (setting_.chosen.device == "cpu") origin["arithmetic"] = setting_.arithmetic;
  if (!partition_sha256_.empty()) origin["partition_sha256"] = partition_sha256_;
  return origin;
}

Model OpenRun::model() const {
  return {setting_.network, state_.global, experiment_.smoothing.sigma, setting_.train.class_names};
}

NoisyVotes OpenRun::noisy_votes() const {
  return {setting_.device, setting_.threads, experiment_.seed};
}

Training OpenRun::training(std::function<void(const RoundRow&)> on_row) {
  last_ = std::chrono::steady_clock::now();
  LocalTask task = local_task(setting_, experiment_);
  task.teacher = teacher_;
  const auto image_weights = [this](const ServerState& state, const LocalTask& now) {
    return image_tables_->weights(state, now);
  };
  return {task,
          options_,
          partition_,
          state_,
          [this, on_row = std::move(on_row)](const ServerState&, const RoundReport& report) {
            return write_round(report, on_row);
          },
          number_,
          image_tables_ ? image_weights : decltype(Training::image_weights)()};
}

bool OpenRun::write_round(const RoundReport& report,
                          const std::function<void(const RoundRow&)>& on_row) {
  RoundRow row = describe(report, options_.method);
  if (options_.evaluate_every > 0 && report.round % options_.evaluate_every == 0) {
    row.noisy_accuracy = noisy_accuracy(model(), setting_.test, noisy_votes());
  }
  const auto time = std::chrono::steady_clock::now();
  row.seconds = std::chrono::duration<double>(time - last_).count();
  last_ = time;
  append_line(run_.folder / "rounds.tsv", format_round(row));
  if (experiment_.log.tensorboard) append_round_event(run_.folder, row);
  const bool stop = setting_.stopped();
  const bool due = report.round % options_.checkpoint_every == 0 || report.round == options_.rounds;
  if (stop || due) flush_file(run_.folder / "rounds.tsv");  // keep_rounds() needs the row on disk
  checkpoints_.add(state_, stop || due);
  dropped_ += report.dropped;
  for (const DroppedClient& one : report.named) {
    if (named_.size() == kMostNamed) break;
    named_.push_back(fmt::format("client {} in round {} ({})", one.client, report.round, one.why));
  }
  if (report.telemetry.steps > 0) last_row_ = row;
  on_row(row);
  return !stop;
}

std::vector<std::string> OpenRun::warnings() const {
  std::vector<std::string> all;
  if (dropped_ > 0) {
    const int64_t others = dropped_ - std::ssize(named_);
    std::string who = fmt::format("{}", fmt::join(named_, ", "));
    if (others > 0) who += fmt::format("{}{} more", named_.empty() ? "" : " and ", others);
    all.push_back(fmt::format("dropped {} update{}: {}", dropped_, dropped_ == 1 ? "" : "s", who));
  }
  if (!last_row_ || state_.round < options_.rounds) return all;
  // For a network that guesses, only the cross-entropy term has a known value.
  const RoundRow& last = *last_row_;
  const double loss = last.loss - last.loss_robust.value_or(0.0) - last.loss_entropy.value_or(0.0);
  const auto classes = static_cast<double>(output_shape(setting_.network)[0]);
  // A network that was trained without noise need not tell noisy images apart.
  const bool noisy =
      options_.method != Method::kStandard && options_.method != Method::kAdversarial;
  const double sigma = noisy ? experiment_.smoothing.sigma : kAlmostNoNoise;
  const Dataset& seen = setting_.images_elsewhere.empty() ? setting_.train : setting_.test;
  if (!(loss <= std::log(classes))) {
    all.push_back(fmt::format(
        "the last loss, {:.3f}, is above that of guessing among {} classes, {:.3f}: nothing was "
        "learned yet, or train.local.learning_rate={} is too large",
        loss, classes, std::log(classes), experiment_.train.local.learning_rate));
  } else if (const auto answer = only_answer(model(), sigma, seen, noisy_votes())) {
    all.push_back(fmt::format(
        "the network answers {:?} for all images, of whatever class: nothing was learned yet, or "
        "training collapsed; try another train.local.learning_rate, here {}",
        seen.class_names[*answer], experiment_.train.local.learning_rate));
  }
  return all;
}

void OpenRun::finish(const Traffic& traffic) const {
  if (state_.round < options_.rounds) {
    throw Interrupted{fmt::format("interrupted after round {} of {}; continue with --resume",
                                  state_.round, options_.rounds)};
  }
  const std::string bytes = format_model(model());
  write_file(run_.folder / "model.safetensors", bytes);
  nlohmann::json provenance = {{"version", version()},
                               {"commit", commit()},
                               {"device", setting_.chosen.device},
                               {"threads", setting_.threads},
                               {"started", setting_.started},
                               {"finished", utc_now()},
                               {"model_sha256", sha256(bytes)},
                               {"data_sha256", setting_.train_digest.get()}};
  provenance.update(nlohmann::json(digest_history(run_.folder)));
  if (setting_.ranks > 1) {
    provenance.update({{"ranks", setting_.ranks},
                       {"bytes_to_each_rank", traffic.down},
                       {"bytes_from_each_rank", traffic.up}});
  }
  write_file(run_.folder / "provenance.json", dump_json_lines(provenance));
  write_file(run_.folder / "DONE", "");
}

}  // namespace fedsmooth::jobs
