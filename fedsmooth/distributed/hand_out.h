// Items of unequal cost, each worked on by the next free rank. Rank 0 hands them out in a separate
// thread while it works on some itself, and processes the results in the order of the items.
#pragma once

#include <functional>
#include <string>

#include "fedsmooth/base/stop.h"
#include "fedsmooth/distributed/ranks.h"

namespace fedsmooth {

/// Computes the result of item i, as bytes. May throw Interrupted.
using Work = std::function<std::string(int64_t i)>;

/// Runs at rank 0, for items first .. count - 1. Calls `take` for each result in ascending order,
/// from one thread at a time. If any rank throws Interrupted, calls `take` for the results before
/// the first missing one and then throws Interrupted. Rethrows an exception of `take` and an Error
/// of any rank.
void hand_out(Ranks& ranks, int64_t first, int64_t count, const Work& work,
              const std::function<void(int64_t i, const std::string& result)>& take);

/// Runs at every other rank, until rank 0 has no more items.
void work_on_items(Ranks& ranks, const Work& work);

}  // namespace fedsmooth
