// The teacher of cat-rs: how the votes of a Gaussian model fall on every training image.
#pragma once

#include "fedsmooth/jobs/training/open_run.h"

namespace fedsmooth::jobs {

/// Shares of the votes [images, K], from the run's teacher.safetensors. If that is not there yet it
/// is made: by the model that objective.teacher names or, for "auto", by one that is trained here
/// as the experiment is, but with method "gaussian" at the teacher's sigma. Throws Interrupted when
/// told to stop; nothing is kept of a teacher that is not finished.
Array teacher_votes(const TrainingContext& setting, const Experiment& experiment,
                    const Partition& partition, const std::filesystem::path& folder);

}  // namespace fedsmooth::jobs
