// A run folder while it is trained: what the training needs, and what the folder gets after every
// round and at the end.
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

/// What runs that are trained side by side share.
struct TrainingContext {
  /// Data and network are those of the first run.
  TrainingContext(const std::vector<TrainArguments>& runs, const Context& context);
  /// For a run of its own images, of which other processes have others.
  TrainingContext(const Experiment& experiment, Dataset own, const Context& context);
  TrainingContext(const TrainingContext&) = delete;
  TrainingContext& operator=(const TrainingContext&) = delete;

  std::string started;
  Stop stopped;
  int ranks;
  int threads;                                   // of each rank
  std::string device;                            // as asked for
  std::vector<int64_t> images_elsewhere;         // of each client, if none is here
  Dataset train, test;                           // test is there, at rank 0, if a run evaluates
  std::shared_future<std::string> train_digest;  // made while the first rounds run
  Network network;
  ChosenExecutor chosen;
  std::string arithmetic;  // of CPUs that train

 private:
  TrainingContext(const Experiment& experiment, const Federation* federation, Dataset train,
                  Dataset test, const Context& context);
};

/// Who holds which images.
Partition partition_of(const TrainingContext& setting, const Experiment& experiment);

/// What the clients of an experiment do, in the setting of its runs.
LocalTask local_task(const TrainingContext& setting, const Experiment& experiment);
TrainOptions train_options(const TrainingContext& setting, const Experiment& experiment);

/// Refuses a run that cannot be trained in this setting.
void check_run(const TrainingContext& setting, const TrainArguments& arguments);

class OpenRun {
 public:
  /// Opens the folder, which is only made if the experiment can be trained. `number` tells the run
  /// from those side by side with it.
  OpenRun(const TrainingContext& setting, const TrainArguments& arguments, int64_t number);

  int64_t rounds() const { return options_.rounds; }
  int64_t rounds_done() const { return state_.round; }

  /// The rounds that are left, or those until the user asks to stop. `on_row` is called with what
  /// the folder's table got.
  Training training(std::function<void(const RoundRow&)> on_row);

  /// What the user should know of the rounds that were trained: which updates were dropped, a
  /// last loss above that of guessing, and a network that answers one class only.
  std::vector<std::string> warnings() const;

  /// Writes the model, and DONE last. Throws Interrupted if rounds are left. `traffic` is that of
  /// all runs side by side.
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
  std::string partition_sha256_;  // of its file, as it was read
  std::unique_ptr<FolderLock> lock_;
  Run run_;
  ServerState state_;
  Array teacher_;                            // of cat-rs, see teacher.h
  std::optional<ImageTables> image_tables_;  // of sun
  Checkpoints checkpoints_;
  int64_t dropped_ = 0;                         // updates
  std::vector<std::string> named_;              // the first of them, with round, client and tensor
  std::optional<RoundRow> last_row_;            // none: no round was trained
  std::chrono::steady_clock::time_point last_;  // when the last round ended
};

}  // namespace fedsmooth::jobs
