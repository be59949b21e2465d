// Things of a kind, found by comparing them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fedsmooth {

using Indices = std::vector<size_t>;

/// The numbers 0 .. count - 1 in groups, in the order in which the first of each appears. `same(a,
/// b)` says whether two belong together; a group's first member is asked for all of it.
template <typename Same>
std::vector<Indices> group_indices(size_t count, const Same& same) {
  std::vector<Indices> groups;
  for (size_t i = 0; i < count; ++i) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const Indices& group) { return same(group.front(), i); });
    if (found == groups.end()) {
      groups.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  return groups;
}

}  // namespace fedsmooth
