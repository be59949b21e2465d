#include "fedsmooth/federated/reductions.h"

#include <algorithm>
#include <utility>

#include "fedsmooth/base/error.h"
#include "fedsmooth/federated/reduction_rules.h"

namespace fedsmooth {
namespace {

Reduction mean_reduction() {
  return {"mean", Gather::kSum,
          [](const AggregateOptions&, const RoundResult& cohort, const Weights& global) {
            return cohort.sum.average(global);
          }};
}

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

}  // namespace

Registry<Reduction>& reductions() {
  static Registry<Reduction> all("aggregate.kind",
                                 {mean_reduction(), median_reduction(), trimmed_mean_reduction()});
  return all;
}

Weights reduce(const AggregateOptions& options, RoundResult result, const Weights& global) {
  std::sort(result.each.begin(), result.each.end(),
            [](const ClientWeights& a, const ClientWeights& b) { return a.client < b.client; });
  return reductions().find(options.kind).reduce(options, result, global);
}

int64_t bytes_kept(const AggregateOptions& options, const Network& network, int64_t cohort) {
  if (reductions().find(options.kind).gather == Gather::kSum) return 0;
  int64_t values = 0;
  for (const Parameter& p : parameters(network)) values += count_of(p.shape);
  return cohort * values * static_cast<int64_t>(sizeof(float));
}

void check_cohort_fits(const AggregateOptions& options, int64_t bytes, int64_t room) {
  if (bytes <= room) return;
  throw Error(
      "aggregate.kind={:?}: keeps the weights of every client of a round, {:.2f} GB, and {:.2f} GB "
      "of memory are free; take a smaller train.clients_per_round or \"mean\"",
      options.kind, gigabytes(bytes), gigabytes(room));
}

}  // namespace fedsmooth
