// Who does what: work of unequal cost dealt out so that all are done at about the same time.
#pragma once

#include <cstddef>
#include <vector>

namespace fedsmooth {

/// For each of `ranks`, the indices in `costs` of what it gets, rising. The most expensive goes
/// first, each to whoever has the least, so no rank has more than 4/3 of what the best plan gives
/// the busiest one (Graham 1969).
std::vector<std::vector<size_t>> deal(const std::vector<double>& costs, int ranks);

}  // namespace fedsmooth
