// How blocks of threads take the pairs of pair_lists.h: a block computes a group of results, in
// chunks whose items, the tiles that it reads, fit into its shared memory together.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/pair_lists.h"

namespace fedsmooth {

struct PairGroups {
  int groups = 0, most_items = 0;
  std::vector<int> order;        // of the results; those of a group are neighbours
  std::vector<int> chunk_first;  // of each group; and the end
  std::vector<int> items;        // of each chunk: what is on the left, then what is on the right
  std::vector<int> item_first;   // of each chunk; and the end
  std::vector<int> lefts;        // of each chunk: how many of its items are on the left
  std::vector<Pair> places;      // of the pairs, among their chunk's items
  std::vector<int> place_first;  // of each chunk and each result of its group; and the end
};

/// Groups of `per_group` results, chunks of at most `most_items` items (at least 2).
PairGroups group_pairs(const PairLists& lists, const std::vector<int>& order, int per_group,
                       int most_items);

/// The same for squares, four results that follow each other, whose right sides are taken one after
/// another: each chunk's in their order, and only those that the square needs.
struct PairSteps {
  std::vector<Pair>
      steps;  // a right side, and in the bytes of `left` what each result takes with it
  std::vector<int> first;  // of each chunk and each square of its group; and the end
};

/// Empty where results are no squares, two pairs of one share a right side, or a chunk has too
/// few steps or too many.
PairSteps steps_of(const PairGroups& groups, int per_group);

/// The pixels of a map, 2x2 squares one after another: neighbours read much of the same.
std::vector<int> order_by_squares(int height, int width);

}  // namespace fedsmooth
