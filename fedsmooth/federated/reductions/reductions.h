// Reductions join a cohort's weights to one update. The mean, sum_k (n_k / n) theta_k, is summed
// while clients finish. The others tolerate clients that fail or lie; they keep every client's
// weights until the last client has finished. All give the same bits for any order of the clients
// and any number of threads, GPU waves and ranks.
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
  double clip = 0.0;          // l2 length to which longer updates w_k - w are shortened; 0: off
  double trim = 0.1;          // trimmed-mean: fraction of the clients cut off at each end
  int64_t assumed_bad = 0;    // krum, multi-krum: f, the number of clients that may lie
  int64_t iterations = 3;     // geometric-median: number of Weiszfeld steps
  /// SFAT (Zhu et al. 2023), for `mean`: factor by which the weight of the 20% of clients with the
  /// smallest loss is multiplied; 1 disables it.
  double sfat = 1.0;
  int threads = 1;  // threads of the server, at least one; results do not depend on them
};

/// The input of a reduction: a round's kept clients, at least one. References are valid during the
/// call.
struct ReductionInput {
  const AggregateOptions& options;      // assumed_bad counts the kept clients only
  const RoundResult& cohort;            // `each` is sorted by client
  const std::vector<Parameter>& known;  // parameters() of the network
  const Weights& global;                // weights with which the round began
};

struct Reduction {
  std::string name;
  Gather gather = Gather::kSum;  // form of the weights that it needs; kSum accepts kEach too
  /// Returns the update, in the shapes of `global`.
  std::function<Weights(const ReductionInput&)> reduce;
  /// Returns the fewest clients for which it is defined. Empty: 1.
  std::function<int64_t(const AggregateOptions&)> fewest_clients = {};
};

/// Returns the table of all reductions. A program may add its own before it trains.
Registry<Reduction>& reductions();

/// Throws an Error for options that are impossible with `cohort` clients.
void check_aggregate_options(const AggregateOptions& options, int64_t cohort);

/// Returns the form in which an executor has to return the weights.
Gather gathered_for(const AggregateOptions& options);

/// Returns the update of the round's kept clients, at least one. A cohort of one client returns
/// that client's weights. Clipping measures and shortens trained weights, not running statistics;
/// SFAT does not change the weights of norms. Dropped clients count as bad ones, so f is reduced by
/// their number.
Weights reduce(const AggregateOptions& options, const Network& network, RoundResult result,
               const Weights& global);

/// Returns the bytes that the weights of `clients` clients take until they are reduced.
int64_t bytes_of_cohort(const Network& network, int64_t clients);

/// Throws an Error if a cohort of `bytes` bytes does not fit into `room` bytes.
void check_cohort_fits(int64_t bytes, int64_t room);

}  // namespace fedsmooth
