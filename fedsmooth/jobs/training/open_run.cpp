#include "fedsmooth/jobs/training/open_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/jobs/pages/tensorboard.h"
#include "fedsmooth/jobs/training/clients.h"
#include "fedsmooth/jobs/training/noisy_answers.h"
#include "fedsmooth/jobs/training/teacher.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

constexpr double kAlmostNoNoise = 1e-6;
constexpr size_t kMostNamed = 5;  // dropped updates that a warning names

std::unique_ptr<FolderLock> take_folder(const TrainingContext& setting, const TrainArguments& a,
                                        const Partition& partition) {
  check_run(setting, a, partition);
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

OpenRun::OpenRun(const TrainingContext& setting, const TrainArguments& a, int64_t number)
    : setting_(setting),
      experiment_(a.experiment),
      number_(number),
      partition_(partition_of(setting, a.experiment)),
      options_(train_options(setting, a.experiment)),
      partition_sha256_(a.experiment.partition.kind == PartitionKind::kFile
                            ? sha256(read_file(a.experiment.partition.file))
                            : ""),
      lock_(take_folder(setting, a, partition_)),
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
    if (!named_.empty() && others > 0) who += fmt::format(" and {} more", others);
    all.push_back(fmt::format("dropped {} update{}{}{}", dropped_, dropped_ == 1 ? "" : "s",
                              who.empty() ? "" : ": ", who));
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
