// The test images that a page shows of its runs, from the data sets that were certified.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth::jobs {

/// Sets `images` of each certified run, or `no_images`: the data set must be the very one that the
/// table names by its digest. It is looked for where the run's experiment says, or in `root` if
/// that is not empty. A data set that several runs share is read once. More than six runs get
/// neither.
void load_gallery_images(std::vector<RunRecord>& runs, const std::string& root);

}  // namespace fedsmooth::jobs
