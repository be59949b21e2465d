// What runs show, in a sentence: the title of a page, and what it says first.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Returns the radius of the standard table at which the runs are compared in words: the largest up
/// to the least noise level (in l_inf, what that certifies) at which every certified run could
/// certify images and some run does; 0 if there is none.
double verdict_radius(const std::vector<RunRecord>& runs);

/// Returns "smoothadv certifies 42% of the images within ℓ₂ radius 0.25, standard 13%." Of more
/// than three runs it names the best and the worst. Without certificates it describes the training.
std::string verdict(const std::vector<RunRecord>& runs);

/// Returns what the certificates are about: "100 images of shapes, σ = 0.25, n = 6,000, α = 0.001."
/// Says so if the runs have different images; empty without certificates.
std::string verdict_terms(const std::vector<RunRecord>& runs);

/// Returns "smoothadv and standard on shapes", or "20 runs on cifar10".
std::string describe_runs(const std::vector<RunRecord>& runs);

/// Returns a sentence if the runs were trained for different numbers of rounds, else nothing.
std::string note_on_rounds(const std::vector<RunRecord>& runs);

/// Formats 12345 as "12,345".
std::string grouped(int64_t count);

}  // namespace fedsmooth
