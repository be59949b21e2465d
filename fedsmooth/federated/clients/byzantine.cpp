#include "fedsmooth/federated/clients/byzantine.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

// Children of the partition's key that nothing else draws from; partition.cpp has number 0,
// train.cpp number 1.
constexpr uint64_t kWho = 2, kFirstNoise = 3;

Weights corrupted(const ByzantineOptions& o, const ClientWeights& honest, Key key,
                  const Weights& global) {
  Weights sent;
  for (size_t i = 0; i < global.size(); ++i) {
    Array& w = sent.emplace_back(global[i].sizes());
    const float *from = global[i].floats(), *trained = honest.weights[i].floats();
    if (o.kind == ByzantineKind::kNoise) {
      fill_normal({key, static_cast<uint32_t>(i), static_cast<uint32_t>(honest.client)}, 0,
                  w.floats(), w.count());
    }
    for (int64_t j = 0; j < w.count(); ++j) {
      const double moved =
          o.kind == ByzantineKind::kNoise ? double{w.floats()[j]} : double{from[j]} - trained[j];
      w.floats()[j] = static_cast<float>(from[j] + o.scale * moved);
    }
  }
  return sent;
}

}  // namespace

std::vector<int64_t> byzantine_clients(const ByzantineOptions& options, int64_t clients,
                                       uint64_t seed) {
  if (!options.clients.empty()) return options.clients;
  const int64_t count = std::llround(options.share * static_cast<double>(clients));
  Draws draws({make_key(seed, Purpose::kPartition, kWho)});
  std::vector<int64_t> bad = draws.choose(count, clients);
  std::sort(bad.begin(), bad.end());
  return bad;
}

void check_byzantine_options(const ByzantineOptions& options, int64_t clients) {
  if (options.share > 0 && !options.clients.empty()) {
    throw Error("byzantine.share={}: byzantine.clients names the bad ones; leave one of them out",
                options.share);
  }
  if (!options.clients.empty() && options.clients.back() >= clients) {
    throw Error("byzantine.clients: has client {}, and there are {}, numbered from 0",
                options.clients.back(), clients);
  }
  if (options.kind == ByzantineKind::kLabelFlip && options.scale != 1) {
    throw Error("byzantine.scale={}: byzantine.kind=\"label-flip\" does not use it; leave it out",
                options.scale);
  }
}

void corrupt_updates(const ByzantineOptions& options, const std::vector<int64_t>& bad,
                     uint64_t seed, int64_t t, const Weights& global, RoundResult& result) {
  const Key key = make_key(seed, Purpose::kPartition, kFirstNoise + static_cast<uint64_t>(t));
  for (ClientWeights& one : result.each) {
    if (std::binary_search(bad.begin(), bad.end(), one.client)) {
      one.weights = corrupted(options, one, key, global);
    }
  }
}

}  // namespace fedsmooth
