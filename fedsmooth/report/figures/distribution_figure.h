// What becomes of all images, which an average certified radius hides (Sun et al., 2025: it can be
// raised by giving up on hard images).
#pragma once

#include <vector>

#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// The share of images by the lower bound on the probability of a correct answer, and by its
/// radius: two histograms, an outline for each run. Images that are wrong or abstained on are a bin
/// of their own. Runs that are not certified are left out, and so are published tables without
/// sigma from the first. Refuses to leave out all.
Figure distribution_figure(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
