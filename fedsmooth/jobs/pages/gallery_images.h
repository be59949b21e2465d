// Loads the test images that a page shows for its runs, from the data sets that were certified.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth::jobs {

/// Sets `images` of each certified run, or `no_images`, the reason why there are none. The data set
/// is read from `root` or, if that is empty, from the root of the run's experiment, and must have
/// the digest that the table states. A data set that several runs share is read once. If there are
/// more than six runs, nothing is set.
void load_gallery_images(std::vector<RunRecord>& runs, const std::string& root);

}  // namespace fedsmooth::jobs
