// The weights by which an objective draws a run's training images: tables that are made while the
// run is trained, and kept in its folder, so that a resumed run draws the same.
#pragma once

#include <filesystem>
#include <map>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/federated/train.h"

namespace fedsmooth::jobs {

struct TrainingContext;

/// Kept in the run's images.safetensors, every table under its number.
class ImageTables {
 public:
  /// Reads the tables that are there. What is referred to outlives it.
  ImageTables(const TrainingContext& setting, const Experiment& experiment,
              const std::filesystem::path& folder);

  /// The table [images] that the task's round draws by, undefined if it reads none. One that is not
  /// there is made by votes of the state's weights. Throws Interrupted when told to stop.
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
