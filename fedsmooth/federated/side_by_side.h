// Several runs at once: the executor gets a round of each run together, which fills a machine for
// which one run's cohort is too small. Every run gives the bits that train() gives.
#pragma once

#include <exception>
#include <vector>

#include "fedsmooth/federated/train.h"

namespace fedsmooth {

/// Trains each run from its state to its last round, all of them one round at a time. An exception
/// of a run or of its on_round ends only that run and is returned at its index; null: none. An
/// exception of the executor ends all runs and is rethrown.
std::vector<std::exception_ptr> train_side_by_side(const std::vector<Training>& runs,
                                                   Executor& executor);

}  // namespace fedsmooth
