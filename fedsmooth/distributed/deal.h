// Divides work of unequal cost so that all ranks finish at about the same time.
#pragma once

#include <cstddef>
#include <vector>

namespace fedsmooth {

/// Returns, for each rank, the indices in `costs` of its items, in ascending order. Items are
/// assigned in descending order of cost, each to the rank with the least work, so the busiest rank
/// has at most 4/3 of the work that it has in the best division (Graham 1969).
std::vector<std::vector<size_t>> deal(const std::vector<double>& costs, int ranks);

}  // namespace fedsmooth
