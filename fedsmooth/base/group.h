// Groups of equivalent items, found by comparing them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fedsmooth {

using Indices = std::vector<size_t>;

/// Divides the numbers 0 .. count - 1 into groups, ordered by their first members. `same(a, b)`
/// tells whether two numbers belong together; a number is compared with the first member of each
/// group.
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
