// The weights by which an objective draws a run's training images. They are tables that are made
// during training and kept in the run folder, so that a resumed run draws the same images.
#pragma once

#include <filesystem>
#include <map>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/federated/train.h"

namespace fedsmooth::jobs {

struct TrainingContext;

/// The tables of one run, in its images.safetensors, each under its number.
class ImageTables {
 public:
  /// Reads the tables that exist. `setting` and `experiment` must outlive it. Throws an Error if
  /// the file is of another run or of other data.
  ImageTables(const TrainingContext& setting, const Experiment& experiment,
              const std::filesystem::path& folder);

  /// Returns the table [images] by which the task's round draws; empty if it reads none. A table
  /// that does not exist is made by votes of the state's weights and written. Throws Interrupted
  /// when stopped.
  Array weights(const ServerState& state, const LocalTask& task);

 private:
  Array make(int64_t number, const ServerState& state, const LocalTask& task) const;
  void write() const;

  const TrainingContext& setting_;
  const Experiment& experiment_;
  std::filesystem::path path_;
  std::map<int64_t, Array> tables_;  // by number
};

}  // namespace fedsmooth::jobs
