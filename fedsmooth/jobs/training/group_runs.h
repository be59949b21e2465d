// A run of several groups (groups.count): each group is trained as a federation of its own, side by
// side with the others, into a folder of its own in the run's folder. What one client can reach is
// the model of its group alone; certificates against malicious clients rest on that.
#pragma once

#include "fedsmooth/jobs/training.h"

namespace fedsmooth::jobs {

/// Refuses an experiment of several groups in which one client could reach the models of more than
/// one of them.
void check_groups(const Experiment& experiment);

/// Refuses groups on nodes that have the experiment's data: one that trains clients of several
/// groups would reach the models of all of these.
void refuse_groups_on_shared_nodes(const Experiment& experiment);

/// The experiment of one of the groups, from 1.
Experiment experiment_of_group(const Experiment& experiment, int64_t number);

/// As train(), for an experiment of several groups. If one group cannot be trained, none is. Its
/// models' digest_groups() is the run's model_sha256. Once all are done, the seed of the run's
/// certificates is drawn from the operating system, so that no client could train for its draws.
TrainedRun train_groups(const TrainArguments& run, const Context& context);

}  // namespace fedsmooth::jobs
