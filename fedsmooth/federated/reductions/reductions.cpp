#include "fedsmooth/federated/reductions/reductions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/federated/reductions/reduction_rules.h"

namespace fedsmooth {
namespace {

std::vector<double> shares_of(const std::vector<ClientWeights>& each) {
  std::vector<double> shares;
  for (const ClientWeights& one : each) shares.push_back(one.share);
  return shares;
}

// Only what norms have starts at a fixed value.
bool belongs_to_norm(const Parameter& parameter) { return parameter.fan_in == 0; }

// Shares with the smallest fifth of the losses, rounded down, weighing more; of equal ones that of
// the smaller client.
std::vector<double> slack_shares(double sfat, const std::vector<ClientWeights>& each) {
  std::vector<std::pair<double, size_t>> losses;
  for (size_t k = 0; k < each.size(); ++k) {
    losses.emplace_back(std::isnan(each[k].loss) ? INFINITY : each[k].loss, k);
  }
  std::sort(losses.begin(), losses.end());
  std::vector<double> shares = shares_of(each);
  for (size_t i = 0; i < each.size() / 5; ++i) shares[losses[i].second] *= sfat;
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= total;
  return shares;
}

Weights mean(const ReductionInput& in) {
  const std::vector<ClientWeights>& each = in.cohort.each;
  if (each.empty()) return in.cohort.sum.average(in.global, in.known);
  const std::vector<double> plain = shares_of(each);
  if (in.options.sfat == 1) return average_of(each, plain, in.known, in.options.threads);
  const std::vector<double> slack = slack_shares(in.options.sfat, each);
  const auto shares = [&](size_t i) -> const std::vector<double>& {
    return belongs_to_norm(in.known[i]) ? plain : slack;
  };
  return average_of(each, shares, in.known, in.options.threads);
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
  static Registry<Reduction> all("aggregate.kind", {{"mean", Gather::kSum, mean},
                                                    median_reduction(),
                                                    trimmed_mean_reduction(),
                                                    krum_reduction(),
                                                    multi_krum_reduction(),
                                                    geometric_median_reduction()});
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

Weights reduce(const AggregateOptions& given, const Network& network, RoundResult result,
               const Weights& global) {
  check(given.threads > 0, "reduce: {} threads", given.threads);
  check(!result.each.empty() || gathered_for(given) == Gather::kSum, "reduce: no client");
  AggregateOptions options = given;
  options.assumed_bad = std::max<int64_t>(0, given.assumed_bad - result.dropped);
  if (!result.each.empty()) check_aggregate_options(options, std::ssize(result.each));
  std::sort(result.each.begin(), result.each.end(),
            [](const ClientWeights& a, const ClientWeights& b) { return a.client < b.client; });
  const std::vector<Parameter> known = parameters(network);
  if (options.clip > 0) {
    for (ClientWeights& one : result.each) clip_update(options.clip, known, global, one.weights);
  }
  // As a sum its weights would round, and those of a centralized run may be too large for one.
  if (result.each.size() == 1 && result.each[0].share == 1) return result.each[0].weights;
  return reductions().find(options.kind).reduce({options, result, known, global});
}

Weights average_of(const std::vector<ClientWeights>& each, const SharesOfTensor& shares,
                   const std::vector<Parameter>& known, int threads) {
  constexpr int64_t kBlock = 1024;  // values whose sums stay in the cache
  check(!each.empty(), "average_of: no client");
  Weights out;
  for (const Array& w : each[0].weights) out.emplace_back(w.sizes());
  Workers workers(threads);
  workers.run([&](int worker) {
    std::vector<long long> sums(kBlock * kWideWords);
    for (size_t i = 0; i < out.size(); ++i) {
      const std::vector<double>& of_each = shares(i);
      long long share = 0;
      for (const double one : of_each) share += std::llrint(one * FixedPointSum::kUnit);
      const int64_t size = out[i].count();
      for (int64_t first = worker * kBlock; first < size; first += threads * kBlock) {
        const int64_t count = std::min(kBlock, size - first);
        std::fill(sums.begin(), sums.end(), 0);
        for (size_t k = 0; k < each.size(); ++k) {
          add_scaled(each[k].weights[i].floats() + first, count, of_each[k] * FixedPointSum::kUnit,
                     known[i].trained, sums.data());
        }
        divide_sums(sums.data(), count, static_cast<double>(share), known[i].trained,
                    out[i].floats() + first);
      }
    }
  });
  return out;
}

Weights average_of(const std::vector<ClientWeights>& each, const std::vector<double>& shares,
                   const std::vector<Parameter>& known, int threads) {
  return average_of(
      each, [&](size_t) -> const std::vector<double>& { return shares; }, known, threads);
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
      "aggregate.sfat and the keys byzantine, which keeps none",
      gigabytes(bytes), gigabytes(room));
}

}  // namespace fedsmooth
