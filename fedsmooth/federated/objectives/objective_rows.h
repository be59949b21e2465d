// The library's own objectives, for the table in objective.cpp: one file each, of the same name.
#pragma once

#include "fedsmooth/federated/objectives/objective.h"

namespace fedsmooth {

Objective consistency_objective();
Objective stability_objective();
Objective macer_objective();
Objective smoothmix_objective();
Objective cat_rs_objective();
Objective sun_objective();

}  // namespace fedsmooth
