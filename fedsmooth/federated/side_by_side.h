// Several runs at once: a round of each goes to the executor together, which fills a machine for
// which one run's cohort is too small. A run ends as train() would end it, to the bit.
#pragma once

#include <exception>
#include <vector>

#include "fedsmooth/federated/train.h"

namespace fedsmooth {

/// Each run continues from its state to its last round, all of them a round at a time. What a run
/// throws, its on_round included, ends that run alone and is returned in its place; null: nothing.
/// What the executor throws ends all of them and is thrown here.
std::vector<std::exception_ptr> train_side_by_side(const std::vector<Training>& runs,
                                                   Executor& executor);

}  // namespace fedsmooth
