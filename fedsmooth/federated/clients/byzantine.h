// Bad clients, for tests of reductions and of certificates against malicious clients: a fixed set
// of clients, named or drawn by the seed, sends weights other than those that it trained, or trains
// on wrong labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

enum class ByzantineKind {
  kSignFlip,   // w - scale (w_k - w): the update turned round
  kNoise,      // w + scale N(0, I)
  kLabelFlip,  // trained on K - 1 - y in place of y, see LocalTask::flippers
};

struct ByzantineOptions {
  double share = 0.0;            // fraction of all clients that are bad; their number is rounded
  std::vector<int64_t> clients;  // numbers of the bad ones, ascending, in place of a share
  ByzantineKind kind = ByzantineKind::kSignFlip;
  double scale = 1.0;  // for kSignFlip and kNoise

  bool any() const { return share > 0 || !clients.empty(); }
  /// Returns whether updates are replaced, which requires Gather::kEach.
  bool corrupts_updates() const { return any() && kind != ByzantineKind::kLabelFlip; }
};

/// Returns which of `clients` clients are bad, in ascending order: the named ones, or a share drawn
/// by the seed.
std::vector<int64_t> byzantine_clients(const ByzantineOptions& options, int64_t clients,
                                       uint64_t seed);

/// Refuses a share beside named clients, a name that none of `clients` clients has, and a scale
/// that the kind does not use.
void check_byzantine_options(const ByzantineOptions& options, int64_t clients);

/// Replaces the weights of the clients `bad` in round t. The result must have Gather::kEach.
void corrupt_updates(const ByzantineOptions& options, const std::vector<int64_t>& bad,
                     uint64_t seed, int64_t t, const Weights& global, RoundResult& result);

}  // namespace fedsmooth
