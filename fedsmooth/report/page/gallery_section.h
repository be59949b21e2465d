// Test images on the page: what the noise does to one, and those of a run that show it at its best
// and at its worst, with the votes behind each answer.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// An image of the first run that has one, bare and with noise of each run's sigma. Empty if no run
/// has images.
std::string render_noise(const std::vector<RunRecord>& runs);

/// The groups of choose_gallery(); where the images could not be had, a line that says why.
std::string render_gallery(const RunRecord& run);

}  // namespace fedsmooth
