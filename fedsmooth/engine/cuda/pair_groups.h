// How thread blocks divide up the pairs of pair_lists.h. A block computes a group of results, and
// reads their pairs in chunks, so that the items of a chunk (the tiles that its pairs refer to) fit
// into shared memory together.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/pair_lists.h"

namespace fedsmooth {

/// Lists of all groups, one after another. The last entry of a list `..._first` is the total.
struct PairGroups {
  int groups = 0, most_items = 0;  // number of groups; largest number of items in a chunk
  std::vector<int> order;          // all results; those of a group are neighbours
  std::vector<int> chunk_first;    // [group]: its first chunk
  std::vector<int> items;          // of all chunks, in each the left sides, then the right sides
  std::vector<int> item_first;     // [chunk]: its first item
  std::vector<int> lefts;          // [chunk]: number of its items that are left sides
  std::vector<Pair> places;        // of all pairs: indices into the items of the pair's chunk
  std::vector<int> place_first;    // [chunk, result of its group]: its first pair
};

/// Divides `order` into groups of `per_group` results, and their pairs into chunks of at most
/// `most_items` items, which must be at least 2.
PairGroups group_pairs(const PairLists& lists, const std::vector<int>& order, int per_group,
                       int most_items);

/// The pairs of squares, which are four consecutive results of the order. A step of a square is one
/// right side of a chunk, with the left side that each of the four results multiplies by it.
struct PairSteps {
  /// `right` is the right side; byte r of `left` is the left side of result r, or kNoLeft. Steps
  /// are in the order of the chunk's items, without those that the square does not need.
  std::vector<Pair> steps;
  std::vector<int> first;  // [chunk, square of its group]: its first step; then the total
};

/// Returns the steps of all squares. Empty if results do not divide into squares, two pairs of a
/// result in a chunk share a right side, a left side does not fit into a byte, or a square has
/// fewer than kFewestSteps or more than kMostSteps steps in a chunk.
PairSteps steps_of(const PairGroups& groups, int per_group);

/// Returns the pixels of a map, one 2x2 square after another, so that neighbours in the list read
/// many of the same items.
std::vector<int> order_by_squares(int height, int width);

}  // namespace fedsmooth
