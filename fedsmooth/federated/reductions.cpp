#include "fedsmooth/federated/reductions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/federated/reduction_rules.h"

namespace fedsmooth {
namespace {

std::vector<double> shares_of(const std::vector<ClientWeights>& each) {
  std::vector<double> shares;
  for (const ClientWeights& one : each) shares.push_back(one.share);
  return shares;
}

Reduction mean_reduction() {
  return {"mean", Gather::kSum,
          [](const AggregateOptions& o, const RoundResult& cohort, const Weights& global) {
            // A client that is the whole cohort is its own mean: as a sum it would round.
            if (cohort.each.size() == 1 && cohort.each[0].share == 1) return cohort.each[0].weights;
            FixedPointSum sum = cohort.sum;
            if (!cohort.each.empty()) {
              sum.add(add_up(cohort.each, shares_of(cohort.each), o.threads));
            }
            return sum.average(global);
          }};
}

// Only what norms have starts at a fixed value.
bool belongs_to_norm(const Parameter& parameter) { return parameter.fan_in == 0; }

// The mean with the smallest fifth of the losses, rounded down, weighing more; of equal ones that
// of the smaller client. `each` is sorted by client.
Weights slack_mean(const AggregateOptions& o, const std::vector<ClientWeights>& each,
                   const Weights& global) {
  std::vector<std::pair<double, size_t>> losses;
  for (size_t k = 0; k < each.size(); ++k) {
    losses.emplace_back(std::isnan(each[k].loss) ? INFINITY : each[k].loss, k);
  }
  std::sort(losses.begin(), losses.end());
  std::vector<double> shares = shares_of(each);
  for (size_t i = 0; i < each.size() / 5; ++i) shares[losses[i].second] *= o.sfat;
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= total;
  return add_up(each, shares, o.threads).average(global);
}

// Weights `begin` to `end` of all tensors, one after the other.
void add_scaled(const Weights& weights, double scale, int64_t begin, int64_t end, long long* sums) {
  int64_t first = 0;  // of a tensor
  for (const Array& w : weights) {
    const int64_t from = std::max(begin, first), to = std::min(end, first + w.count());
    const float* values = w.floats();
    for (int64_t i = from; i < to; ++i) sums[i] += std::llrint(scale * values[i - first]);
    first += w.count();
  }
}

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

// w_k <- w + (w_k - w) min(1, c / |w_k - w|).
void clip_update(double longest, const std::vector<Parameter>& known, const Weights& global,
                 Weights& weights) {
  double square = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!known[i].trained) continue;
    square += squared_distance(weights[i].floats(), global[i].floats(), weights[i].count());
  }
  const double length = std::sqrt(square);
  if (length <= longest) return;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!known[i].trained) continue;
    weights[i] = weights[i].clone();
    float* w = weights[i].floats();
    const float* from = global[i].floats();
    for (int64_t j = 0; j < weights[i].count(); ++j) {
      w[j] = static_cast<float>(from[j] + (double{w[j]} - from[j]) * (longest / length));
    }
  }
}

}  // namespace

Registry<Reduction>& reductions() {
  static Registry<Reduction> all(
      "aggregate.kind", {mean_reduction(), median_reduction(), trimmed_mean_reduction(),
                         krum_reduction(), multi_krum_reduction(), geometric_median_reduction()});
  return all;
}

void check_aggregate_options(const AggregateOptions& options, int64_t cohort) {
  const Reduction& reduction = reductions().find(options.kind);
  const int64_t fewest = reduction.fewest_clients ? reduction.fewest_clients(options) : 1;
  if (options.sfat > 1 && options.kind != "mean") {
    throw Error("aggregate.sfat={}: weighs the clients of aggregate.kind=\"mean\", not of {:?}",
                options.sfat, options.kind);
  }
  if (cohort >= fewest) return;
  throw Error("aggregate.kind={:?}: with these options needs at least {} clients, a round has {}",
              options.kind, fewest, cohort);
}

Gather gathered_for(const AggregateOptions& options) {
  if (options.clip > 0 || options.sfat > 1) return Gather::kEach;
  return reductions().find(options.kind).gather;
}

Weights reduce(const AggregateOptions& options, const Network& network, RoundResult result,
               const Weights& global) {
  check(options.threads > 0, "reduce: {} threads", options.threads);
  check(!result.each.empty() || gathered_for(options) == Gather::kSum, "reduce: no client");
  if (!result.each.empty()) check_aggregate_options(options, std::ssize(result.each));
  std::sort(result.each.begin(), result.each.end(),
            [](const ClientWeights& a, const ClientWeights& b) { return a.client < b.client; });
  if (options.clip > 0) {
    const std::vector<Parameter> known = parameters(network);
    for (ClientWeights& one : result.each) clip_update(options.clip, known, global, one.weights);
  }
  Weights update = reductions().find(options.kind).reduce(options, result, global);
  if (options.sfat == 1) return update;
  const Weights slack = slack_mean(options, result.each, global);
  const std::vector<Parameter> known = parameters(network);
  for (size_t i = 0; i < update.size(); ++i) {
    if (!belongs_to_norm(known[i])) update[i] = slack[i];
  }
  return update;
}

FixedPointSum add_up(const std::vector<ClientWeights>& each, const std::vector<double>& shares,
                     int threads) {
  check(!each.empty(), "add_up: no client");
  Workers workers(threads);
  std::vector<int> kept(each.size());
  workers.run([&](int worker) {
    for (size_t k = worker; k < each.size(); k += threads) kept[k] = usable(each[k].weights);
  });
  int64_t size = 0, share = 0, dropped = 0;
  for (const Array& w : each[0].weights) size += w.count();
  for (size_t k = 0; k < each.size(); ++k) {
    share += kept[k] ? std::llrint(shares[k] * FixedPointSum::kUnit) : 0;
    dropped += kept[k] ? 0 : 1;
  }
  std::vector<long long> sums(size);
  workers.run([&](int worker) {
    const int64_t begin = size * worker / threads, end = size * (worker + 1) / threads;
    for (size_t k = 0; k < each.size(); ++k) {
      if (kept[k])
        add_scaled(each[k].weights, shares[k] * FixedPointSum::kUnit, begin, end, sums.data());
    }
  });
  FixedPointSum sum;
  sum.add(sums.data(), size, share, dropped);
  return sum;
}

int64_t bytes_of_cohort(const Network& network, int64_t clients) {
  int64_t values = 0;
  for (const Parameter& p : parameters(network)) values += count_of(p.shape);
  return clients * values * static_cast<int64_t>(sizeof(float));
}

void check_cohort_fits(int64_t bytes, int64_t room) {
  if (bytes <= room) return;
  throw Error(
      "train.clients_per_round: the weights of all clients of a round take {:.2f} GB, and {:.2f} "
      "GB of memory are free; take fewer, or aggregate.kind=\"mean\" without aggregate.clip, "
      "aggregate.sfat and byzantine.share, which keeps none",
      gigabytes(bytes), gigabytes(room));
}

}  // namespace fedsmooth
