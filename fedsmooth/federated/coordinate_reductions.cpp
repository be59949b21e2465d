// Reductions that look at one weight at a time (Yin et al. 2018): its values over the clients are
// sorted; the median takes the middle, the trimmed mean the average without both ends. Clients
// count the same, however many images they hold.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/federated/reduction_rules.h"

namespace fedsmooth {
namespace {

constexpr int64_t kBlock = 256;  // weights that are sorted side by side

FEDSMOOTH_VECTOR_CLONES void order_pair(float* a, float* b) {
  for (int64_t i = 0; i < kBlock; ++i) {
    const float low = b[i] < a[i] ? b[i] : a[i], high = b[i] < a[i] ? a[i] : b[i];
    a[i] = low;
    b[i] = high;
  }
}

// Each column of rows [clients, kBlock], by Batcher's merge exchange (Knuth, 5.2.2 M): which pairs
// are compared depends on the number of rows alone, so that columns go side by side.
void sort_columns(float* rows, int64_t clients) {
  if (clients < 2) return;
  const auto half = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(clients)) / 2);
  for (int64_t p = half; p > 0; p /= 2) {
    int64_t q = half, r = 0, d = p;
    while (true) {
      for (int64_t i = 0; i + d < clients; ++i) {
        if ((i & p) == r) order_pair(rows + i * kBlock, rows + (i + d) * kBlock);
      }
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
}

// `pick` turns sorted rows [clients, kBlock] into values [kBlock].
template <typename Pick>
Weights reduce_columns(int threads, const std::vector<ClientWeights>& each, const Weights& like,
                       Pick pick) {
  const auto clients = static_cast<int64_t>(each.size());
  Weights out;
  for (const Array& w : like) out.emplace_back(w.sizes());
  Workers workers(threads);
  workers.run([&](int worker) {
    std::vector<float> rows(clients * kBlock), picked(kBlock);
    for (size_t w = 0; w < out.size(); ++w) {
      const int64_t size = out[w].count();
      for (int64_t first = worker * kBlock; first < size; first += workers.count() * kBlock) {
        const int64_t count = std::min(kBlock, size - first);
        for (int64_t k = 0; k < clients; ++k) {
          std::copy_n(each[k].weights[w].floats() + first, count, rows.data() + k * kBlock);
        }
        sort_columns(rows.data(), clients);
        pick(rows.data(), picked.data());
        std::copy_n(picked.data(), count, out[w].floats() + first);
      }
    }
  });
  return out;
}

Weights median(int threads, const RoundResult& cohort, const Weights& global) {
  const auto clients = static_cast<int64_t>(cohort.each.size());
  const int64_t low = (clients - 1) / 2, high = clients / 2;
  return reduce_columns(threads, cohort.each, global, [&](const float* rows, float* out) {
    for (int64_t i = 0; i < kBlock; ++i) {
      const double middle = (double{rows[low * kBlock + i]} + double{rows[high * kBlock + i]}) / 2;
      out[i] = static_cast<float>(middle);
    }
  });
}

// In the fixed point of FixedPointSum, where each of K clients has the share 1 / K: with equal
// clients and nothing cut off, the mean to the bit.
Weights trimmed_mean(const AggregateOptions& o, const RoundResult& cohort, const Weights& global) {
  const auto clients = static_cast<int64_t>(cohort.each.size());
  const auto cut = static_cast<int64_t>(o.trim * static_cast<double>(clients));
  const double all = static_cast<double>(clients + cohort.sum.dropped());
  const double scale = 1.0 / all * FixedPointSum::kUnit;
  const auto share = static_cast<double>((clients - 2 * cut) * std::llrint(scale));
  return reduce_columns(o.threads, cohort.each, global, [&](const float* rows, float* out) {
    long long sums[kBlock] = {};
    for (int64_t k = cut; k < clients - cut; ++k) {
      for (int64_t i = 0; i < kBlock; ++i) sums[i] += std::llrint(scale * rows[k * kBlock + i]);
    }
    for (int64_t i = 0; i < kBlock; ++i) {
      out[i] = static_cast<float>(static_cast<double>(sums[i]) / share);
    }
  });
}

}  // namespace

Reduction median_reduction() {
  return {"median", Gather::kEach,
          [](const AggregateOptions& o, const RoundResult& cohort, const Weights& global) {
            return median(o.threads, cohort, global);
          }};
}

Reduction trimmed_mean_reduction() { return {"trimmed-mean", Gather::kEach, trimmed_mean}; }

}  // namespace fedsmooth
