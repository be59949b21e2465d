// The data, network and executor that runs trained side by side share, and the partition, task and
// options of one experiment that follow from them.
#pragma once

#include <future>

#include "fedsmooth/engine/executors.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/jobs/training.h"

namespace fedsmooth::jobs {

/// The data, network and executor that runs side by side share.
struct TrainingContext {
  /// Loads the data and the network of the first run, which all `runs` have.
  TrainingContext(const std::vector<TrainArguments>& runs, const Context& context);
  /// Uses the images `own`, for a node of a federation whose other nodes have images of their own.
  TrainingContext(const Experiment& experiment, Dataset own, const Context& context);
  TrainingContext(const TrainingContext&) = delete;
  TrainingContext& operator=(const TrainingContext&) = delete;

  std::string started;
  Stop stopped;
  int ranks;
  int threads;                                   // of each rank
  std::string device;                            // Context::device
  std::vector<int64_t> images_elsewhere;         // images of each client, if nodes have their own
  Dataset train, test;                           // test is empty except at rank 0 if a run needs it
  std::shared_future<std::string> train_digest;  // computed by a thread during the first rounds
  Network network;
  ChosenExecutor chosen;
  std::string arithmetic;  // of the CPUs that train

 private:
  TrainingContext(const Experiment& experiment, const Federation* federation, Dataset train,
                  Dataset test, const Context& context);
};

/// Returns the partition of the images among the experiment's clients, or among the nodes that have
/// images of their own.
Partition partition_of(const TrainingContext& setting, const Experiment& experiment);

/// Returns the task of the experiment's clients. The setting must outlive it.
LocalTask local_task(const TrainingContext& setting, const Experiment& experiment);
/// Returns the experiment's options, with the threads of the setting, and one client per round if
/// it is centralized.
TrainOptions train_options(const TrainingContext& setting, const Experiment& experiment);

/// Throws an Error for a run that cannot be trained in this setting. `partition` is its
/// partition_of().
void check_run(const TrainingContext& setting, const TrainArguments& arguments,
               const Partition& partition);

}  // namespace fedsmooth::jobs
