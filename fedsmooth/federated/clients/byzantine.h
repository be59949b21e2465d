// Bad clients, to try reductions on: a fixed set, drawn by the seed, sends other weights than those
// that it trained, or trains on other labels than its images have.
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
  double share = 0.0;  // of all clients, rounded
  ByzantineKind kind = ByzantineKind::kSignFlip;
  double scale = 1.0;  // of the first two

  /// Whether what clients sent is replaced, for which it has to be there one by one.
  bool corrupts_updates() const { return share > 0 && kind != ByzantineKind::kLabelFlip; }
};

/// Which of `clients` clients are bad, rising.
std::vector<int64_t> byzantine_clients(const ByzantineOptions& options, int64_t clients,
                                       uint64_t seed);

/// Replaces what the clients `bad` sent in round t, which gathered each one's weights.
void corrupt_updates(const ByzantineOptions& options, const std::vector<int64_t>& bad,
                     uint64_t seed, int64_t t, const Weights& global, RoundResult& result);

}  // namespace fedsmooth
