#include "fedsmooth/distributed/round_plan.h"

#include <cstring>

#include "fedsmooth/base/check.h"
#include "fedsmooth/distributed/deal.h"

namespace fedsmooth {
namespace {

template <typename T>
void append(std::string& bytes, const T* values, size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

void append(std::string& bytes, int64_t value) { append(bytes, &value, 1); }

// Its sizes and values; one that is not there has no sizes.
void append_table(std::string& bytes, const Array& table) {
  const Sizes sizes = table.defined() ? table.sizes() : Sizes{};
  append(bytes, std::ssize(sizes));
  append(bytes, sizes.data(), sizes.size());
  if (table.defined()) append(bytes, table.floats(), table.count());
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  void read(T* values, size_t count) {
    check(count * sizeof(T) <= bytes_.size() - place_, "plan: ends too early");
    // Of nothing there may be no place, which memcpy does not take.
    if (count > 0) std::memcpy(values, bytes_.data() + place_, count * sizeof(T));
    place_ += count * sizeof(T);
  }
  int64_t number() {
    int64_t value = 0;
    read(&value, 1);
    return value;
  }
  Array table() {
    Sizes sizes(number());
    read(sizes.data(), sizes.size());
    if (sizes.empty()) return {};
    Array values(sizes);
    read(values.floats(), values.count());
    return values;
  }
  Weights weights(const Network& network) {
    Weights found;
    for (const Parameter& p : parameters(network)) {
      Array& w = found.emplace_back(p.shape);
      read(w.floats(), w.count());
    }
    return found;
  }

 private:
  const std::string& bytes_;
  size_t place_ = 0;
};

double cost_of_client(const LocalTask& task) {
  return static_cast<double>(task.local.steps * task.local.batch);
}

}  // namespace

std::vector<RoundAssignment> plan_rounds(const std::vector<Round>& rounds, int ranks) {
  std::vector<RoundAssignment> plan;
  std::vector<std::pair<size_t, int64_t>> clients;  // a round and a client of it
  std::vector<double> costs;
  for (size_t r = 0; r < rounds.size(); ++r) {
    const Round& round = rounds[r];
    plan.push_back({round.run, round.t, round.cohort.total,
                    std::vector<std::vector<int64_t>>(ranks), round.global, round.task.teacher,
                    round.task.image_weights});
    if (round.velocity != nullptr) plan.back().velocity = *round.velocity;
    for (const int64_t client : round.cohort.clients) {
      clients.emplace_back(r, client);
      costs.push_back(cost_of_client(round.task));
    }
  }
  const std::vector<std::vector<size_t>> dealt = deal(costs, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const size_t i : dealt[rank]) {
      plan[clients[i].first].clients[rank].push_back(clients[i].second);
    }
  }
  return plan;
}

Cohort gather_cohort(const Partition& partition, const std::vector<int64_t>& clients,
                     int64_t total) {
  Cohort cohort{clients, {}, total};
  for (const int64_t client : clients) cohort.images.push_back(partition.images(client));
  return cohort;
}

std::string format_plan(const std::vector<RoundAssignment>& plan) {
  std::string bytes;
  append(bytes, static_cast<int64_t>(plan.size()));
  for (const RoundAssignment& round : plan) {
    append(bytes, round.run);
    append(bytes, round.t);
    append(bytes, round.total);
    for (const std::vector<int64_t>& clients : round.clients) {
      append(bytes, static_cast<int64_t>(clients.size()));
      append(bytes, clients.data(), clients.size());
    }
    append(bytes, round.velocity.empty() ? 0 : 1);
    for (const Weights& weights : {round.global, round.velocity}) {
      for (const Array& w : weights) append(bytes, w.floats(), w.count());
    }
    append_table(bytes, round.teacher);
    append_table(bytes, round.image_weights);
  }
  return bytes;
}

std::vector<RoundAssignment> parse_plan(const std::string& bytes, const Network& network,
                                        int ranks) {
  Reader reader(bytes);
  std::vector<RoundAssignment> plan(reader.number());
  for (RoundAssignment& round : plan) {
    round.run = reader.number();
    round.t = reader.number();
    round.total = reader.number();
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<int64_t>& clients = round.clients.emplace_back(reader.number());
      reader.read(clients.data(), clients.size());
    }
    const bool has_velocity = reader.number() != 0;
    round.global = reader.weights(network);
    if (has_velocity) round.velocity = reader.weights(network);
    round.teacher = reader.table();
    round.image_weights = reader.table();
  }
  return plan;
}

}  // namespace fedsmooth
