#include "fedsmooth/federated/clients/groups.h"

#include "fedsmooth/base/draws.h"

namespace fedsmooth {

int64_t group_of(int64_t client, int64_t count, uint64_t seed) {
  Draws draws({make_key(seed, Purpose::kGroups), 0, static_cast<uint32_t>(client)});
  return 1 + draws.below(count);
}

std::vector<int64_t> clients_of_group(const GroupOptions& o, int64_t clients, uint64_t seed) {
  std::vector<int64_t> members;
  for (int64_t k = 0; k < clients; ++k) {
    if (group_of(k, o.count, seed) == o.number) members.push_back(k);
  }
  return members;
}

}  // namespace fedsmooth
