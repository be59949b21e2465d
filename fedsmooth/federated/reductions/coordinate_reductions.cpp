// Reductions that look at one weight at a time (Yin et al. 2018): its values over the clients are
// sorted; the median takes the middle, the trimmed mean the average without both ends. Clients
// count the same, however many images they hold.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/federated/reductions/reduction_rules.h"

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

// `pick` turns `count` columns of sorted rows [clients, kBlock] into as many values. It is told
// whether they are of a trained tensor.
template <typename Pick>
Weights reduce_columns(const ReductionInput& in, Pick pick) {
  const std::vector<ClientWeights>& each = in.cohort.each;
  const auto clients = static_cast<int64_t>(each.size());
  Weights out;
  for (const Array& w : in.global) out.emplace_back(w.sizes());
  Workers workers(in.options.threads);
  workers.run([&](int worker) {
    std::vector<float> rows(clients * kBlock);
    for (size_t w = 0; w < out.size(); ++w) {
      const int64_t size = out[w].count();
      for (int64_t first = worker * kBlock; first < size; first += workers.count() * kBlock) {
        const int64_t count = std::min(kBlock, size - first);
        for (int64_t k = 0; k < clients; ++k) {
          std::copy_n(each[k].weights[w].floats() + first, count, rows.data() + k * kBlock);
        }
        sort_columns(rows.data(), clients);
        pick(rows.data(), count, in.known[w].trained, out[w].floats() + first);
      }
    }
  });
  return out;
}

Weights median(const ReductionInput& in) {
  const auto clients = static_cast<int64_t>(in.cohort.each.size());
  const int64_t low = (clients - 1) / 2, high = clients / 2;
  return reduce_columns(in, [&](const float* rows, int64_t count, bool /*trained*/, float* out) {
    for (int64_t i = 0; i < count; ++i) {
      const double middle = (double{rows[low * kBlock + i]} + double{rows[high * kBlock + i]}) / 2;
      out[i] = static_cast<float>(middle);
    }
  });
}

// In the fixed point of FixedPointSum, where each of K clients has the share 1 / K: with equal
// clients and nothing cut off, the mean to the bit.
Weights trimmed_mean(const ReductionInput& in) {
  const auto clients = static_cast<int64_t>(in.cohort.each.size());
  const auto cut = static_cast<int64_t>(in.options.trim * static_cast<double>(clients));
  const double all = static_cast<double>(clients + in.cohort.dropped);
  const double scale = 1.0 / all * FixedPointSum::kUnit;
  const auto share = static_cast<double>((clients - 2 * cut) * std::llrint(scale));
  return reduce_columns(in, [&](const float* rows, int64_t count, bool trained, float* out) {
    long long sums[kBlock * kWideWords] = {};
    for (int64_t k = cut; k < clients - cut; ++k) {
      add_scaled(rows + k * kBlock, count, scale, trained, sums);
    }
    divide_sums(sums, count, share, trained, out);
  });
}

}  // namespace

Reduction median_reduction() { return {"median", Gather::kEach, median}; }

Reduction trimmed_mean_reduction() { return {"trimmed-mean", Gather::kEach, trimmed_mean}; }

}  // namespace fedsmooth
