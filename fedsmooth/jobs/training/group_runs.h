// A run of several groups (groups.count): each group is trained as a federation of its own, side by
// side with the others, into a folder of its own in the run's folder. A client can influence only
// its group's model; certificates against malicious clients rest on that.
#pragma once

#include "fedsmooth/jobs/training.h"

namespace fedsmooth::jobs {

/// Throws an Error for an experiment of several groups in which one client could influence the
/// models of more than one group, or which could not be certified.
void check_groups(const Experiment& experiment);

/// Throws an Error for an experiment of several groups. Call it where nodes have the experiment's
/// data: a node with clients of several groups would influence the models of all of these.
void refuse_groups_on_shared_nodes(const Experiment& experiment);

/// Returns the experiment of one group, numbered from 1.
Experiment experiment_of_group(const Experiment& experiment, int64_t number);

/// Does train() for an experiment of several groups. If one group cannot be trained, none is. The
/// run's model_sha256 is digest_groups() of the groups' models. Once all groups are done, the seed
/// of the run's certificates is drawn from the operating system, so that no client could train for
/// its draws.
TrainedRun train_groups(const TrainArguments& run, const Context& context);

}  // namespace fedsmooth::jobs
