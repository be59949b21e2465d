// Items of unequal cost worked on by whichever rank is free. Rank 0 hands them out in a thread of
// its own while it works on some itself, and takes the results in the items' order.
#pragma once

#include <functional>
#include <string>

#include "fedsmooth/base/stop.h"
#include "fedsmooth/distributed/ranks.h"

namespace fedsmooth {

/// What becomes of item i, as bytes. May throw Interrupted.
using Work = std::function<std::string(int64_t i)>;

/// Rank 0's part: items first .. count - 1. `take` is called for one after another, in order, from
/// one thread at a time. Throws Interrupted if any rank did, after what was done up to the first
/// gap was taken. What `take` throws, and the Error of work at any rank, is thrown here.
void hand_out(Ranks& ranks, int64_t first, int64_t count, const Work& work,
              const std::function<void(int64_t i, const std::string& result)>& take);

/// The other ranks' part.
void work_on_items(Ranks& ranks, const Work& work);

}  // namespace fedsmooth
