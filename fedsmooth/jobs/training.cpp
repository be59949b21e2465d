#include "fedsmooth/jobs/training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/distributed/distributed_executor.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/federated/side_by_side.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"
#include "fedsmooth/jobs/training/clients.h"
#include "fedsmooth/jobs/training/group_runs.h"
#include "fedsmooth/jobs/training/open_run.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

template <typename Work>
std::exception_ptr catch_thrown(const Work& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// Returns the experiment with one fixed value for everything in which runs side by side may differ.
Experiment shared_part(Experiment e) {
  const StepOptions all = {e.data.augment, e.train.method, e.smoothing,
                           e.attack,       e.train.local,  e.objective};
  const StepOptions step = all.without_numbers();
  e.seed = 0;
  e.partition = {};
  e.smoothing = step.smoothing;
  e.attack = step.attack;
  e.objective = step.objective;
  TrainOptions train;
  train.mode = e.train.mode;
  train.method = step.method;
  train.local = step.local;
  e.train = train;
  e.certify = {};
  e.log = {};
  return e;
}

nlohmann::json describe_job(const std::vector<TrainArguments>& runs) {
  nlohmann::json experiments;
  for (const TrainArguments& run : runs) experiments.push_back(format_experiment(run.experiment));
  return {{"kind", "train"}, {"experiments", experiments}};
}

// All ranks must load the same data and round alike: otherwise their sums would not be one run's.
std::unique_ptr<TrainingContext> load_together(const std::vector<TrainArguments>& runs,
                                               const Context& context) {
  std::unique_ptr<TrainingContext> setting;
  agree(ranks_of(context), [&]() -> nlohmann::json {
    setting = std::make_unique<TrainingContext>(runs, context);
    if (ranks_of(context).size() == 1) return {};
    return {{"data", setting->train_digest.get()},
            {"device", setting->chosen.device},
            {"arithmetic", cpu_arithmetic()}};
  });
  return setting;
}

// Returns how many of these runs, which have the same mode, fill the machines of all ranks.
size_t room_for_runs(const TrainingContext& setting, const std::vector<TrainArguments>& runs) {
  if (setting.chosen.device != "cpu") return runs.size();
  const bool federated = runs.front().experiment.train.mode == Mode::kFederated;
  return federated ? 1 : static_cast<size_t>(setting.threads) * setting.ranks;
}

void announce(const std::vector<TrainArguments>& runs, size_t count, const Context& context) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(runs[i].folder.filename());
  context.note(fmt::format("{} runs side by side: {}", count, fmt::join(names, ", ")));
}

void train_to_the_end(const TrainArguments& run, const Context& context) {
  announce_job(ranks_of(context), describe_job({run}));
  const std::unique_ptr<TrainingContext> setting = load_together({run}, context);
  DistributedExecutor executor(ranks_of(context), *setting->chosen.executor);
  OpenRun opened(*setting, run, 0);
  const auto progress = begin_progress(context, "train", opened.rounds_done(), opened.rounds());
  const Training training = opened.training([&](const RoundRow& row) {
    progress->step(fmt::format("loss {:.3f}", row.loss));
    if (run.on_round) run.on_round(row);
  });
  fedsmooth::train(training, executor);
  for (const std::string& line : opened.warnings()) context.warn("warning: " + line);
  opened.finish(executor.traffic());
}

// Trains the first `count` runs side by side.
std::vector<std::exception_ptr> train_first(size_t count, const std::vector<TrainArguments>& runs,
                                            const TrainingContext& setting, const Context& context,
                                            bool all_or_none) {
  DistributedExecutor executor(ranks_of(context), *setting.chosen.executor);
  for (size_t i = 0; all_or_none && i < count; ++i)
    check_run(setting, runs[i], partition_of(setting, runs[i].experiment));
  if (count > 1) announce(runs, count, context);

  std::vector<std::exception_ptr> thrown(count);
  std::vector<size_t> indices;  // indices in `runs` of the opened runs
  std::vector<std::unique_ptr<OpenRun>> opened;
  int64_t done = 0, total = 0;
  for (size_t i = 0; i < count; ++i) {
    thrown[i] = catch_thrown([&] {
      opened.push_back(std::make_unique<OpenRun>(setting, runs[i], static_cast<int64_t>(i)));
      indices.push_back(i);
      done += opened.back()->rounds_done();
      total += opened.back()->rounds();
    });
  }
  if (all_or_none && opened.size() < count) return thrown;
  const auto progress = begin_progress(context, "train", done, total);
  std::vector<Training> trainings;
  for (size_t j = 0; j < opened.size(); ++j) {
    const std::string name = count > 1 ? runs[indices[j]].folder.filename().string() + ": " : "";
    const auto& on_round = runs[indices[j]].on_round;
    trainings.push_back(opened[j]->training([&progress, &on_round, name](const RoundRow& row) {
      progress->step(fmt::format("{}loss {:.3f}", name, row.loss));
      if (on_round) on_round(row);
    }));
  }
  const auto ended = train_side_by_side(trainings, executor);
  for (size_t j = 0; j < opened.size(); ++j) {
    const std::string name = runs[indices[j]].folder.filename();
    for (const std::string& line : opened[j]->warnings()) {
      context.warn(fmt::format("warning: {}: {}", name, line));
    }
    thrown[indices[j]] =
        ended[j] ? ended[j] : catch_thrown([&] { opened[j]->finish(executor.traffic()); });
  }
  return thrown;
}

}  // namespace

fs::path experiment_file(const fs::path& path) {
  if (const auto run = run_at(path)) return *run / "experiment.toml";
  if (fs::is_directory(path)) {
    throw Error("{}: no run here; give an experiment file or a run folder", path.string());
  }
  return path;
}

TrainingPlace find_training(const fs::path& named, const fs::path& folder) {
  const fs::path own = run_at(named).value_or("runs" / named.stem());
  return {experiment_file(named), folder.empty() ? own : folder};
}

TrainedRun train(const TrainArguments& given, const Context& context) {
  check_context(context);
  Experiment experiment = given.experiment;
  keep_drawn_seed(experiment, given.folder);
  const TrainArguments run{experiment, given.folder, given.resume, given.on_round,
                           given.federation};
  check_groups(experiment);
  if (given.federation != nullptr && given.federation->images.empty()) {
    refuse_groups_on_shared_nodes(experiment);
  }
  if (experiment.groups.are_trained()) return train_groups(run, context);
  const bool is_new = !fs::exists(run.folder / "DONE");
  if (is_new) {
    train_to_the_end(run, context);
  } else {
    start_run(run.folder, experiment, run.resume);  // throws if the experiment differs
  }
  const std::vector<RoundRow> rows = read_rounds(run.folder / "rounds.tsv");
  return {is_new, std::ssize(rows), rows.empty() ? 0.0 : rows.back().loss,
          sha256(read_file(run.folder / "model.safetensors"))};
}

bool go_side_by_side(const Experiment& a, const Experiment& b) {
  if (a.groups.are_trained() || b.groups.are_trained()) return false;
  return format_experiment(shared_part(a)) == format_experiment(shared_part(b));
}

std::vector<std::exception_ptr> train_runs(const std::vector<TrainArguments>& runs,
                                           const Context& context) {
  announce_job(ranks_of(context), describe_job(runs));
  const std::unique_ptr<TrainingContext> setting = load_together(runs, context);
  const size_t count = std::min(runs.size(), room_for_runs(*setting, runs));
  return train_first(count, runs, *setting, context, /*all_or_none=*/false);
}

std::vector<std::exception_ptr> train_together(const std::vector<TrainArguments>& runs,
                                               const Context& context) {
  announce_job(ranks_of(context), describe_job(runs));
  const std::unique_ptr<TrainingContext> setting = load_together(runs, context);
  return train_first(runs.size(), runs, *setting, context, /*all_or_none=*/true);
}

void work_on_training(const nlohmann::json& job, const Context& context) {
  std::vector<Experiment> experiments;
  for (const std::string text : job["experiments"]) {
    experiments.push_back(parse_experiment(text, "rank 0's experiment"));
  }
  std::vector<TrainArguments> runs;
  for (const Experiment& e : experiments) runs.push_back({e, "", false});
  const std::unique_ptr<TrainingContext> setting = load_together(runs, context);
  const auto open = [&](int64_t number) -> RankRun {
    const Experiment& e = experiments.at(number);
    return {local_task(*setting, e), train_options(*setting, e), make_partition(e, setting->train)};
  };
  run_shares(ranks_of(context), *setting->chosen.executor, setting->network, open);
}

}  // namespace fedsmooth::jobs
