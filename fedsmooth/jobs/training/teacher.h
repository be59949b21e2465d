// The teacher of cat-rs: the votes of a Gaussian model for every training image.
#pragma once

#include "fedsmooth/jobs/training/training_context.h"

namespace fedsmooth::jobs {

/// Returns the shares of the votes [images, K], from teacher.safetensors in the run folder. If that
/// file does not exist yet, it is written, with the votes of the model that objective.teacher names
/// or, for "auto", of one that is trained here like the experiment, but with method "gaussian" and
/// sigma 0.25. Throws an Error if the file is of another teacher or of other data, and Interrupted
/// when stopped; an unfinished teacher is not kept.
Array teacher_votes(const TrainingContext& setting, const Experiment& experiment,
                    const Partition& partition, const std::filesystem::path& folder);

}  // namespace fedsmooth::jobs
