// How a cohort's weights become one update. The mean, sum_k (n_k / n) theta_k, is a sum that is
// made as clients end; the others keep every client's weights until the last one has ended and are
// there for clients that fail or lie. All of them give the same bits whatever the order of the
// clients, the threads, the GPU's waves and the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fedsmooth/base/registry.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

struct AggregateOptions {
  std::string kind = "mean";  // a name of reductions()
  double trim = 0.1;          // of `trimmed-mean`: the share cut off at each end
};

struct Reduction {
  std::string name;
  Gather gather = Gather::kSum;  // what it needs
  /// The update, in the shapes of `global`, the weights that the round began with. At least one
  /// client was kept, and RoundResult::each is sorted by client.
  std::function<Weights(const AggregateOptions&, const RoundResult&, const Weights& global)> reduce;
};

/// All of them. A program may add its own before it trains.
Registry<Reduction>& reductions();

/// The update of the round's kept clients, of which there is at least one.
Weights reduce(const AggregateOptions& options, RoundResult result, const Weights& global);

/// What a cohort's weights take until they are reduced. 0: the reduction keeps none.
int64_t bytes_kept(const AggregateOptions& options, const Network& network, int64_t cohort);

/// Refuses a cohort of so many bytes if it does not fit into `room`.
void check_cohort_fits(const AggregateOptions& options, int64_t bytes, int64_t room);

}  // namespace fedsmooth
