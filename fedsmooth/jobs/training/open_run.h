// A run folder during training: opens it, provides what the training needs, and writes its files
// after every round and at the end.
#pragma once

#include <chrono>
#include <functional>

#include "fedsmooth/base/file.h"
#include "fedsmooth/distributed/distributed_executor.h"
#include "fedsmooth/jobs/training/checkpoints.h"
#include "fedsmooth/jobs/training/image_tables.h"
#include "fedsmooth/jobs/training/noisy_answers.h"
#include "fedsmooth/jobs/training/training_context.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/records/rounds.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {

/// One run that is being trained. It holds the folder's lock until it is destroyed.
class OpenRun {
 public:
  /// Opens or resumes the folder, which is only made if the experiment can be trained. `number` is
  /// the run's number among those side by side. `setting` and the experiment must outlive it.
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
  std::vector<std::string> named_;              // the first dropped updates, in words
  std::optional<RoundRow> last_row_;            // none: no round was trained
  std::chrono::steady_clock::time_point last_;  // when the last round ended
};

}  // namespace fedsmooth::jobs
