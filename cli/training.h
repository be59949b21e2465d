// Training into a run folder: what `train` and `sweep` do.
#pragma once

#include <filesystem>

#include "cli/options.h"

namespace fedsmooth::cli {

/// Trains until `folder` has its DONE file, from its checkpoint on if `resume` is set. False if it
/// was done already. Throws Interrupted when told to stop, with the state saved.
bool train_run(const Experiment& experiment, const std::filesystem::path& folder, bool resume,
               const Common& common);

}  // namespace fedsmooth::cli
