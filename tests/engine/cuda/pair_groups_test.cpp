#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/pair_groups.h"

#include <gtest/gtest.h>

#include <numeric>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "tests/engine/cuda/all_pairs.h"

namespace fedsmooth {
namespace {

// The lists that the groups stand for.
PairLists ungroup(const PairGroups& g, size_t results, int per_group) {
  PairLists lists(results);
  for (int group = 0; group < g.groups; ++group) {
    for (int chunk = g.chunk_first[group]; chunk < g.chunk_first[group + 1]; ++chunk) {
      const int first = g.item_first[chunk], end = g.item_first[chunk + 1];
      EXPECT_LE(end - first, g.most_items);
      for (int r = 0; r < per_group; ++r) {
        const int at = chunk * per_group + r;
        for (int i = g.place_first[at]; i < g.place_first[at + 1]; ++i) {
          const Pair& place = g.places[i];
          EXPECT_LT(place.left, g.lefts[chunk]);
          EXPECT_GE(place.right, g.lefts[chunk]);
          EXPECT_LT(first + place.right, end);
          lists[g.order[group * per_group + r]].push_back(
              {g.items[first + place.left], g.items[first + place.right]});
        }
      }
    }
  }
  return lists;
}

using Pairs = std::vector<std::pair<int, int>>;
Pairs sorted(const std::vector<Pair>& list) {
  Pairs out;
  for (const Pair& pair : list) out.emplace_back(pair.left, pair.right);
  std::sort(out.begin(), out.end());
  return out;
}

void expect_same(const PairLists& found, const PairLists& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(sorted(found[i]), sorted(expected[i])) << i;
}

TEST(PairGroupsTest, ShareWhatTheyRead) {
  const PairLists lists = {{{5, 1}, {7, 2}}, {{7, 1}}, {{2, 2}, {5, 0}}};
  const PairGroups groups = group_pairs(lists, {0, 1, 2}, 2, 10);
  EXPECT_EQ(groups.groups, 2);
  EXPECT_EQ(groups.most_items, 4);
  EXPECT_EQ(groups.chunk_first, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(groups.items, (std::vector<int>{5, 7, 1, 2, 5, 2, 0, 2}));
  EXPECT_EQ(groups.lefts, (std::vector<int>{2, 2}));
  expect_same(ungroup(groups, 3, 2), lists);
}

TEST(PairGroupsTest, ChunksHoldEveryPairOnce) {
  for (const char* name : {"alexnet", "small"}) {
    for (const NodePairs& pairs : all_pairs(make_graph(named_network(name), Family::kPairs))) {
      for (const PairLists* lists : {&pairs.by_output, &pairs.by_input, &pairs.by_tap}) {
        std::vector<int> order(lists->size());
        std::iota(order.rbegin(), order.rend(), 0);
        for (const int per_group : {1, 4, 9}) {
          for (const int items : {2, 7, 26}) {
            const PairGroups groups = group_pairs(*lists, order, per_group, items);
            EXPECT_LE(groups.most_items, items);
            expect_same(ungroup(groups, lists->size(), per_group), *lists);
          }
        }
      }
    }
  }
}

// What a result of a square takes in its steps are its places in the chunk, in their order.
TEST(PairGroupsTest, StepsTakeEveryPairInOrder) {
  int tables = 0;
  for (const GraphNode& node : make_graph(named_network("alexnet"), Family::kPairs).nodes) {
    const std::vector<int> order = order_by_squares(node.map.height, node.map.width);
    for (const auto& [per_group, items] : {std::pair(4, 13), std::pair(8, 26)}) {
      const PairGroups g = group_pairs(product_pairs(node).by_output, order, per_group, items);
      const PairSteps steps = steps_of(g, per_group);
      if (steps.steps.empty()) continue;
      ++tables;
      ASSERT_EQ(steps.first.size() - 1, g.lefts.size() * per_group / 4);
      for (int at = 0; at < std::ssize(g.place_first) - 1; ++at) {
        const int first = g.item_first[at / per_group];
        Pairs expected, found;
        for (int i = g.place_first[at]; i < g.place_first[at + 1]; ++i) {
          expected.emplace_back(g.items[first + g.places[i].left],
                                g.items[first + g.places[i].right]);
        }
        for (int i = steps.first[at / 4]; i < steps.first[at / 4 + 1]; ++i) {
          const int left = steps.steps[i].left >> 8 * (at % 4) & 0xFF;
          if (left != kNoLeft) found.emplace_back(left, steps.steps[i].right);
        }
        EXPECT_EQ(found, expected) << at;
      }
    }
  }
  EXPECT_GE(tables, 4);  // at least the convolutions after the first
}

TEST(PairGroupsTest, SquaresAreNeighbours) {
  EXPECT_EQ(order_by_squares(2, 4), (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(order_by_squares(3, 3), (std::vector<int>{0, 1, 3, 4, 2, 5, 6, 7, 8}));
  EXPECT_EQ(order_by_squares(1, 1), (std::vector<int>{0}));
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(PairGroupsTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
