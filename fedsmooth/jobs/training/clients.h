// The clients of an experiment and what they hold.
#pragma once

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/records/clients.h"

namespace fedsmooth::jobs {

/// Who holds which of the training images; in centralized training one client holds all. Of one
/// group, its clients alone are trained.
Partition make_partition(const Experiment& experiment, const Dataset& train);

/// The clients' label histograms; of more than 1,000 clients, 1,000 at equal distances.
std::vector<ClientRow> list_clients(const Partition& partition, const Dataset& train);

struct Clients {
  int64_t count = 0;
  std::vector<ClientRow> rows;  // see above
  std::vector<std::string> class_names;
};

/// Those of an experiment, whose data is loaded for it.
Clients list_clients(const Experiment& experiment);

}  // namespace fedsmooth::jobs
