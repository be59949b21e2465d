#include "fedsmooth/engine/cuda/pair_groups.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

namespace fedsmooth {
namespace {

// Returns the index of an item, which is appended if it is new.
int place_of(std::vector<int>& items, int item) {
  const auto found = std::find(items.begin(), items.end(), item);
  const auto place = static_cast<int>(found - items.begin());
  if (found == items.end()) items.push_back(item);
  return place;
}

// A chunk that is being filled.
struct Chunk {
  std::vector<int> left, right;
  std::vector<std::vector<Pair>> places;  // [result of the group]

  int items() const { return static_cast<int>(left.size() + right.size()); }

  void add(int result, const Pair& pair) {
    places[result].push_back({place_of(left, pair.left), place_of(right, pair.right)});
  }

  void append_to(PairGroups& out) const {
    const auto lefts = static_cast<int>(left.size());
    out.item_first.push_back(static_cast<int>(out.items.size()));
    out.lefts.push_back(lefts);
    out.items.insert(out.items.end(), left.begin(), left.end());
    out.items.insert(out.items.end(), right.begin(), right.end());
    out.most_items = std::max(out.most_items, items());
    for (const std::vector<Pair>& of_result : places) {
      out.place_first.push_back(static_cast<int>(out.places.size()));
      for (const Pair& p : of_result) out.places.push_back({p.left, lefts + p.right});
    }
  }
};

struct ResultPair {
  int result;  // index in the group
  Pair pair;
};

// Returns a group's pairs. Those with the same right side are neighbours, so that few right sides
// are in more than one chunk.
std::vector<ResultPair> pairs_of_group(const PairLists& lists, const std::vector<int>& order,
                                       size_t begin, size_t end) {
  std::vector<ResultPair> pairs;
  for (size_t i = begin; i < end; ++i) {
    for (const Pair& pair : lists[order[i]]) pairs.push_back({static_cast<int>(i - begin), pair});
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const ResultPair& a, const ResultPair& b) {
    return a.pair.right < b.pair.right;
  });
  return pairs;
}

// Returns the left sides that the four results of a square multiply by a right side of their chunk,
// one in each byte, or kNoLeft. None if a left side does not fit, or a result has two.
std::optional<uint32_t> lefts_with(const PairGroups& groups, int first, const int* items,
                                   int right) {
  uint32_t lefts = ~0u;
  for (int r = 0; r < 4; ++r) {
    for (int i = groups.place_first[first + r]; i < groups.place_first[first + r + 1]; ++i) {
      if (groups.places[i].right != right) continue;
      const auto left = static_cast<uint32_t>(items[groups.places[i].left]);
      if (left >= kNoLeft || (lefts >> 8 * r & 0xFF) != kNoLeft) return std::nullopt;
      lefts ^= (left ^ kNoLeft) << 8 * r;
    }
  }
  return lefts;
}

}  // namespace

PairGroups group_pairs(const PairLists& lists, const std::vector<int>& order, int per_group,
                       int most_items) {
  PairGroups out;
  out.order = order;
  for (size_t begin = 0; begin < order.size(); begin += per_group) {
    const size_t end = std::min(order.size(), begin + per_group);
    ++out.groups;
    out.chunk_first.push_back(static_cast<int>(out.lefts.size()));
    const Chunk empty{{}, {}, std::vector<std::vector<Pair>>(per_group)};
    Chunk chunk = empty;
    for (const auto& [result, pair] : pairs_of_group(lists, order, begin, end)) {
      Chunk larger = chunk;
      larger.add(result, pair);
      if (larger.items() > most_items) {
        chunk.append_to(out);
        larger = empty;
        larger.add(result, pair);
      }
      chunk = std::move(larger);
    }
    chunk.append_to(out);
  }
  out.chunk_first.push_back(static_cast<int>(out.lefts.size()));
  out.item_first.push_back(static_cast<int>(out.items.size()));
  out.place_first.push_back(static_cast<int>(out.places.size()));
  return out;
}

PairSteps steps_of(const PairGroups& groups, int per_group) {
  if (per_group % 4 != 0 || groups.order.size() % 4 != 0) return {};
  PairSteps out;
  const auto chunks = static_cast<int>(groups.lefts.size());
  for (int first = 0; first < chunks * per_group; first += 4) {
    const int chunk = first / per_group;
    const size_t before = out.steps.size();
    out.first.push_back(static_cast<int>(before));
    const int* items = groups.items.data() + groups.item_first[chunk];
    const int count = groups.item_first[chunk + 1] - groups.item_first[chunk];
    for (int right = groups.lefts[chunk]; right < count; ++right) {
      const std::optional<uint32_t> lefts = lefts_with(groups, first, items, right);
      if (!lefts) return {};
      if (*lefts != ~0u) out.steps.push_back({static_cast<int>(*lefts), items[right]});
    }
    const size_t added = out.steps.size() - before;
    if (added < kFewestSteps || added > kMostSteps) return {};
  }
  out.first.push_back(static_cast<int>(out.steps.size()));
  return out;
}

std::vector<int> order_by_squares(int height, int width) {
  std::vector<int> order;
  for (int y = 0; y < height; y += 2) {
    for (int x = 0; x < width; x += 2) {
      for (int i = 0; i < 4; ++i) {
        const int row = y + i / 2, column = x + i % 2;
        if (row < height && column < width) order.push_back(row * width + column);
      }
    }
  }
  return order;
}

}  // namespace fedsmooth
