#include "cli/training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cli/clients.h"
#include "cli/progress.h"
#include "cli/rank_jobs.h"
#include "cli/run_training.h"
#include "fedsmooth/distributed/distributed_executor.h"
#include "fedsmooth/engine/cpu/base_classifier.h"

namespace fedsmooth::cli {
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

// The experiment with everything that runs side by side may have of their own set to one value.
Experiment shared_part(Experiment e) {
  e.seed = 0;
  e.partition = {};
  e.smoothing.sigma = 0;
  e.attack.epsilon = e.attack.epsilon > 0 ? 1 : 0;  // without an attack a step is another one
  e.attack.step_size = 0;
  e.attack.warmup_rounds = 0;
  e.attack.measure_cosine = false;
  LocalOptions local = e.train.local;
  local.learning_rate = local.momentum = local.weight_decay = 0;
  TrainOptions train;
  train.mode = e.train.mode;
  train.method = e.train.method;
  train.local = local;
  e.train = train;
  e.certify = {};
  return e;
}

nlohmann::json describe_job(const std::vector<TrainArguments>& runs) {
  nlohmann::json experiments;
  for (const TrainArguments& run : runs) experiments.push_back(format_experiment(run.experiment));
  return {{"kind", "train"}, {"experiments", experiments}};
}

// Ranks that load other data, or round differently, would not add up to one run.
std::unique_ptr<TrainSetting> load_together(const std::vector<TrainArguments>& runs,
                                            const Common& common) {
  std::unique_ptr<TrainSetting> setting;
  agree(*common.ranks, [&]() -> nlohmann::json {
    setting = std::make_unique<TrainSetting>(runs, common);
    if (common.ranks->size() == 1) return {};
    return {{"data", setting->train_digest.get()},
            {"device", setting->chosen.device},
            {"arithmetic", cpu_arithmetic()}};
  });
  return setting;
}

// How many of these runs, which have the same mode, fill the machine, or all ranks' machines.
size_t room_for_runs(const TrainSetting& setting, const std::vector<TrainArguments>& runs) {
  if (setting.chosen.device != "cpu") return runs.size();
  const bool federated = runs.front().experiment.train.mode == Mode::kFederated;
  return federated ? 1 : static_cast<size_t>(setting.threads) * setting.ranks;
}

void announce(const std::vector<TrainArguments>& runs, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(runs[i].folder.filename());
  print_error(fmt::format("{} runs side by side: {}", count, fmt::join(names, ", ")));
}

}  // namespace

bool train_run(const TrainArguments& run, const Common& common) {
  if (fs::exists(run.folder / "DONE")) {
    start_run(run.folder, run.experiment, run.resume);  // refuses another experiment
    return false;
  }
  const std::exception_ptr thrown = train_runs({run}, common).front();
  if (thrown) std::rethrow_exception(thrown);
  return true;
}

bool go_side_by_side(const Experiment& a, const Experiment& b) {
  return format_experiment(shared_part(a)) == format_experiment(shared_part(b));
}

std::vector<std::exception_ptr> train_runs(const std::vector<TrainArguments>& runs,
                                           const Common& common) {
  announce_job(*common.ranks, describe_job(runs));
  const std::unique_ptr<TrainSetting> agreed = load_together(runs, common);
  const TrainSetting& setting = *agreed;
  DistributedExecutor executor(*common.ranks, *setting.chosen.executor);
  const size_t count = std::min(runs.size(), room_for_runs(setting, runs));
  if (count > 1 && !common.quiet) announce(runs, count);

  std::vector<std::exception_ptr> thrown(count);
  std::vector<size_t> places;  // in `runs`, of those that could be opened
  std::vector<std::unique_ptr<RunTraining>> opened;
  int64_t done = 0, total = 0;
  for (size_t i = 0; i < count; ++i) {
    thrown[i] = catch_thrown([&] {
      opened.push_back(std::make_unique<RunTraining>(setting, runs[i], static_cast<int64_t>(i)));
      places.push_back(i);
      done += opened.back()->rounds_done();
      total += opened.back()->rounds();
    });
  }
  Progress progress("train", done, total, common.quiet);
  std::vector<Training> trainings;
  for (size_t j = 0; j < opened.size(); ++j) {
    const std::string name = count > 1 ? runs[places[j]].folder.filename().string() + ": " : "";
    trainings.push_back(opened[j]->training([&progress, name](const RoundRow& row) {
      progress.step(fmt::format("{}loss {:.3f}", name, row.loss));
    }));
  }
  const auto ended = train_side_by_side(trainings, executor);
  for (size_t j = 0; j < opened.size(); ++j) {
    thrown[places[j]] =
        ended[j] ? ended[j] : catch_thrown([&] { opened[j]->finish(executor.traffic()); });
  }
  return thrown;
}

void take_training(const nlohmann::json& job, const Common& common) {
  std::vector<Experiment> experiments;
  for (const std::string text : job["experiments"]) {
    experiments.push_back(parse_experiment(text, "rank 0's experiment"));
  }
  std::vector<TrainArguments> runs;
  for (const Experiment& e : experiments) runs.push_back({e, "", false});
  const std::unique_ptr<TrainSetting> setting = load_together(runs, common);
  const auto open = [&](int64_t number) -> SharedRun {
    const Experiment& e = experiments.at(number);
    return {local_task(*setting, e), train_options(e), make_partition(e, setting->train)};
  };
  run_shares(*common.ranks, *setting->chosen.executor, setting->network, open);
}

}  // namespace fedsmooth::cli
