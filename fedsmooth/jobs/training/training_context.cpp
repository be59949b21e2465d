#include "fedsmooth/jobs/training/training_context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/distributed/remote_executor.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/jobs/training/clients.h"

namespace fedsmooth::jobs {
namespace {

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

void check_run(const TrainingContext& setting, const TrainArguments& a,
               const Partition& partition) {
  const TrainOptions options = train_options(setting, a.experiment);
  check_train_options(options, a.experiment.attack, partition);
  check_objective(options.method, a.experiment.objective);
  if (a.federation) check_for_nodes(options, images_are_elsewhere(a));
  const Weights none;
  const auto why =
      setting.chosen.executor->unsupported({local_task(setting, a.experiment), none, {}, 0});
  if (why) throw Error("{}", *why);
}

}  // namespace fedsmooth::jobs
