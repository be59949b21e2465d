#include "fedsmooth/jobs/training/clients.h"

#include <algorithm>

namespace fedsmooth::jobs {
namespace {

constexpr int64_t kMaxRows = 1000;

}  // namespace

Partition make_partition(const Experiment& experiment, const Dataset& train) {
  PartitionOptions options = experiment.partition;
  if (experiment.train.mode == Mode::kCentralized) options.kind = PartitionKind::kWhole;
  Partition partition(options, train.labels, train.classes(), experiment.seed);
  if (experiment.groups.number > 0) partition.take_group(experiment.groups);
  return partition;
}

std::vector<ClientRow> list_clients(const Partition& partition, const Dataset& train) {
  const std::vector<int64_t> members = partition.members();
  const int64_t clients = std::ssize(members), count = std::min(clients, kMaxRows);
  std::vector<ClientRow> rows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t client = members[i * clients / count];
    rows.push_back({client, count_labels(partition.images(client), train.labels, train.classes())});
  }
  return rows;
}

Clients list_clients(const Experiment& experiment) {
  const Dataset train = load_dataset(experiment.data, Split::kTrain);
  const Partition partition = make_partition(experiment, train);
  return {partition.clients(), list_clients(partition, train), train.class_names};
}

}  // namespace fedsmooth::jobs
