// The clients of an experiment and the training images that each holds.
#pragma once

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/records/clients.h"

namespace fedsmooth::jobs {

/// Returns the partition of the training images among clients. In centralized training one client
/// holds all images. For an experiment of one group, only the group's clients take part.
Partition make_partition(const Experiment& experiment, const Dataset& train);

/// Returns the label histogram of each client; of more than 1,000 clients, those of 1,000 at equal
/// distances.
std::vector<ClientRow> list_clients(const Partition& partition, const Dataset& train);

struct Clients {
  int64_t count = 0;
  std::vector<ClientRow> rows;  // at most 1,000, see list_clients()
  std::vector<std::string> class_names;
};

/// Loads the experiment's training images and returns its clients.
Clients list_clients(const Experiment& experiment);

}  // namespace fedsmooth::jobs
