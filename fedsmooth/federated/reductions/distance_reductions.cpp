// Reductions that look at how far clients' weights lie apart: Krum and multi-Krum (Blanchard et al.
// 2017), and the geometric median by smoothed Weiszfeld steps (RFA, Pillutla et al. 2022).
// Distances are of trained weights alone. Running statistics follow: they are those of the clients
// chosen, or their mean by the last Weiszfeld step's weights.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/federated/reductions/reduction_rules.h"

namespace fedsmooth {
namespace {

constexpr int64_t kLanes = 16;  // partial sums; part of the result's bits
// They stay in the cache while all pairs are compared.
constexpr int64_t kCachedValues = 4096;
constexpr double kSmoothing = 1e-6;  // least distance in a Weiszfeld step

// Squared distances between all clients, [clients, clients]; each thread has pairs of its own.
std::vector<double> distances(const ReductionInput& in) {
  const std::vector<ClientWeights>& each = in.cohort.each;
  const size_t clients = each.size(), threads = in.options.threads;
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t a = 0; a < clients; ++a) {
    for (size_t b = 0; b < a; ++b) pairs.emplace_back(a, b);
  }
  std::vector<double> squares(pairs.size());
  Workers workers(in.options.threads);
  workers.run([&](int worker) {
    for (size_t w = 0; w < each.front().weights.size(); ++w) {
      if (!in.known[w].trained) continue;
      const int64_t size = each.front().weights[w].count();
      for (int64_t first = 0; first < size; first += kCachedValues) {
        const int64_t count = std::min(kCachedValues, size - first);
        const size_t end = pairs.size() * (worker + 1) / threads;
        for (size_t i = pairs.size() * worker / threads; i < end; ++i) {
          const auto [a, b] = pairs[i];
          squares[i] += squared_distance(each[a].weights[w].floats() + first,
                                         each[b].weights[w].floats() + first, count);
        }
      }
    }
  });
  std::vector<double> all(clients * clients, 0.0);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [a, b] = pairs[i];
    all[a * clients + b] = all[b * clients + a] = squares[i];
  }
  return all;
}

// Clients from the one with the least score on: the sum of its K - f - 2 smallest squared distances
// to others. Of equal ones the smaller number goes first.
std::vector<size_t> rank_by_krum(const ReductionInput& in) {
  const size_t clients = in.cohort.each.size();
  const int64_t near = static_cast<int64_t>(clients) - in.options.assumed_bad - 2;
  const std::vector<double> all = distances(in);
  std::vector<double> scores;
  for (size_t k = 0; k < clients; ++k) {
    std::vector<double> own;
    for (size_t other = 0; other < clients; ++other) {
      if (other != k) own.push_back(all[k * clients + other]);
    }
    std::sort(own.begin(), own.end());
    scores.push_back(std::accumulate(own.begin(), own.begin() + near, 0.0));
  }
  std::vector<size_t> order(clients);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  return order;
}

// The best K - f of them, alike. The share is that of K equal clients, dropped ones included: with
// f = 0 and equal clients, the mean to the bit.
Weights multi_krum(const ReductionInput& in) {
  const std::vector<ClientWeights>& each = in.cohort.each;
  const std::vector<size_t> order = rank_by_krum(in);
  const double share = 1.0 / static_cast<double>(std::ssize(each) + in.cohort.dropped);
  std::vector<ClientWeights> best;
  for (size_t i = 0; i < order.size() - in.options.assumed_bad; ++i) best.push_back(each[order[i]]);
  return average_of(best, std::vector<double>(best.size(), share), in.known, in.options.threads);
}

double distance(const Weights& a, const Weights& b, const std::vector<Parameter>& known) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!known[i].trained) continue;
    square += squared_distance(a[i].floats(), b[i].floats(), a[i].count());
  }
  return std::sqrt(square);
}

// z <- sum_k b_k w_k / sum_k b_k, b_k = (n_k / n) / max(|z - w_k|, smoothing), from the mean on.
Weights geometric_median(const ReductionInput& in) {
  const std::vector<ClientWeights>& each = in.cohort.each;
  std::vector<double> b;
  for (const ClientWeights& one : each) b.push_back(one.share);
  const auto average = [&] {
    const double total = std::accumulate(b.begin(), b.end(), 0.0);
    std::vector<double> shares;
    for (const double one : b) shares.push_back(one / total);
    return average_of(each, shares, in.known, in.options.threads);
  };
  Workers workers(in.options.threads);
  Weights z = average();
  for (int64_t i = 0; i < in.options.iterations; ++i) {
    workers.run([&](int worker) {
      for (size_t k = worker; k < b.size(); k += workers.count()) {
        b[k] = each[k].share / std::max(distance(z, each[k].weights, in.known), kSmoothing);
      }
    });
    z = average();
  }
  return z;
}

int64_t fewest_for_krum(const AggregateOptions& o) { return 2 * o.assumed_bad + 3; }

}  // namespace

FEDSMOOTH_VECTOR_CLONES double squared_distance(const float* a, const float* b, int64_t count) {
  double sums[kLanes] = {};
  for (int64_t first = 0; first + kLanes <= count; first += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double apart = double{a[first + lane]} - double{b[first + lane]};
      sums[lane] += apart * apart;
    }
  }
  double sum = 0;
  for (const double one : sums) sum += one;
  for (int64_t i = count - count % kLanes; i < count; ++i) {
    const double apart = double{a[i]} - double{b[i]};
    sum += apart * apart;
  }
  return sum;
}

Reduction krum_reduction() {
  return {"krum", Gather::kEach,
          [](const ReductionInput& in) { return in.cohort.each[rank_by_krum(in).front()].weights; },
          fewest_for_krum};
}

Reduction multi_krum_reduction() {
  return {"multi-krum", Gather::kEach, multi_krum, fewest_for_krum};
}

Reduction geometric_median_reduction() {
  return {"geometric-median", Gather::kEach, geometric_median};
}

}  // namespace fedsmooth
