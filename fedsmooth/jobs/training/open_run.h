// A run folder during training: opens it, provides what the training needs, and writes its files
// after every round and at the end.
#pragma once

#include <chrono>
#include <functional>
#include <future>

#include "fedsmooth/base/file.h"
#include "fedsmooth/distributed/distributed_executor.h"
#include "fedsmooth/engine/executors.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/jobs/training.h"
#include "fedsmooth/jobs/training/checkpoints.h"
#include "fedsmooth/jobs/training/image_tables.h"
#include "fedsmooth/jobs/training/noisy_answers.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/records/rounds.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {

/// The data, network and executor that runs side by side share.
struct TrainingContext {
  /// Loads data and network of the first run.
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
/// Returns the experiment's options, with the threads of the setting, and one client a round if it
/// is centralized.
TrainOptions train_options(const TrainingContext& setting, const Experiment& experiment);

/// Throws an Error for a run that cannot be trained in this setting.
void check_run(const TrainingContext& setting, const TrainArguments& arguments);

/// One run that is being trained. It holds the folder's lock until it is destroyed.
class OpenRun {
 public:
  /// Opens or resumes the folder, which is only made if the experiment can be trained. `number`
  /// tells apart runs that are side by side. `setting` and the experiment must outlive it.
  OpenRun(const TrainingContext& setting, const TrainArguments& arguments, int64_t number);

  int64_t rounds() const { return options_.rounds; }
  int64_t rounds_done() const { return state_.round; }

  /// Returns the training of the rounds that are left; it ends early when the user asks to stop. It
  /// refers to this object. `on_row` is called with each row that was added to rounds.tsv.
  Training training(std::function<void(const RoundRow&)> on_row);

  /// Returns warnings about the rounds that were trained: dropped updates, a last loss above that
  /// of guessing, and a network that answers one class only.
  std::vector<std::string> warnings() const;

  /// Writes the model and the provenance, and DONE last. Throws Interrupted if rounds are left.
  /// `traffic` is the sum over all runs side by side.
  void finish(const Traffic& traffic) const;

 private:
  bool write_round(const RoundReport& report, const std::function<void(const RoundRow&)>& on_row);
  Model model() const;
  NoisyVotes noisy_votes() const;
  Provenance origin() const;

  const TrainingContext& setting_;
  const Experiment& experiment_;
  int64_t number_;
  Partition partition_;
  TrainOptions options_;
  std::string partition_sha256_;  // of the partition's file; empty if it has none
  std::unique_ptr<FolderLock> lock_;
  Run run_;
  ServerState state_;
  Array teacher_;                            // for cat-rs, see teacher.h; else empty
  std::optional<ImageTables> image_tables_;  // for sun
  Checkpoints checkpoints_;
  int64_t dropped_ = 0;                         // number of dropped updates
  std::vector<std::string> named_;              // the first of these: client, round and tensor
  std::optional<RoundRow> last_row_;            // none: no round was trained
  std::chrono::steady_clock::time_point last_;  // when the last round ended
};

}  // namespace fedsmooth::jobs
