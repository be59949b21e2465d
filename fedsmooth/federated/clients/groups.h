// Groups of clients, each of which is trained as a federation of its own. Whoever corrupts m
// clients reaches the networks of at most m groups, which is what certificates against malicious
// clients rest on (smoothing/group_votes.h). A client's group therefore depends on the seed and the
// client's number alone: cutting one random order of all clients into groups would move clients
// between groups when one more joins.
#pragma once

#include <cstdint>
#include <vector>

namespace fedsmooth {

struct GroupOptions {
  int64_t count = 1;   // 1: all clients train one network
  int64_t number = 0;  // of the group that this run trains, from 1; 0: all of them

  /// Returns whether this run trains several groups, rather than one of them.
  bool are_trained() const { return count > 1 && number == 0; }
};

/// Returns the group of a client, from 1 to `count`: a hash of its number, keyed by the seed.
int64_t group_of(int64_t client, int64_t count, uint64_t seed);

/// Returns the members of group options.number among clients 0 ... `clients` - 1, ascending.
std::vector<int64_t> clients_of_group(const GroupOptions& options, int64_t clients, uint64_t seed);

}  // namespace fedsmooth
