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
  double clip = 0.0;          // longest update w_k - w that is taken as it is; 0: any
  double trim = 0.1;          // of `trimmed-mean`: the share cut off at each end
  int64_t assumed_bad = 0;    // f of `krum` and `multi-krum`: clients that may lie
  int64_t iterations = 3;     // of `geometric-median`
  /// SFAT (Zhu et al. 2023), of `mean`: so many times its weight has a client whose loss is among
  /// the smallest fifth; 1: none has more.
  double sfat = 1.0;
  int threads = 1;  // of the server, at least one; they change no bit
};

/// A round's kept clients, of which there is at least one, and what the server knows of them.
struct ReductionInput {
  const AggregateOptions& options;      // assumed_bad: among the kept clients
  const RoundResult& cohort;            // `each` is sorted by client
  const std::vector<Parameter>& known;  // parameters() of the network
  const Weights& global;                // that the round began with
};

struct Reduction {
  std::string name;
  Gather gather = Gather::kSum;  // what it needs; with kSum it takes either
  /// The update, in the shapes of `global`.
  std::function<Weights(const ReductionInput&)> reduce;
  /// Of how many clients it can be taken, at least. Left out: 1.
  std::function<int64_t(const AggregateOptions&)> fewest_clients = {};
};

/// All of them. A program may add its own before it trains.
Registry<Reduction>& reductions();

/// Refuses what cannot be done with cohorts of so many clients.
void check_aggregate_options(const AggregateOptions& options, int64_t cohort);

/// What an executor has to return for it.
Gather gathered_for(const AggregateOptions& options);

/// The update of the round's kept clients, of which there is at least one; that of a client who is
/// the whole cohort is its own. Clipping counts and shortens trained weights alone, not running
/// statistics; SFAT leaves what belongs to norms alone. Dropped clients count as bad ones: only the
/// others of `assumed_bad` are sought among the kept ones.
Weights reduce(const AggregateOptions& options, const Network& network, RoundResult result,
               const Weights& global);

/// What the weights of so many clients take until they are reduced.
int64_t bytes_of_cohort(const Network& network, int64_t clients);

/// Refuses a cohort of so many bytes if it does not fit into `room`.
void check_cohort_fits(int64_t bytes, int64_t room);

}  // namespace fedsmooth
