// Training round by round as charts: a plot for each quantity, above a common axis of rounds.
#pragma once

#include <vector>

#include "fedsmooth/report/page/chart.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Draws loss, noisy accuracy if some round was evaluated, and seconds. Leaves out runs without
/// rounds; throws an Error if no number is left to draw.
Chart training_chart(const std::vector<RunRecord>& runs);

/// Draws how far the attack goes and what it does, for runs with an attack in training; throws
/// likewise.
Chart attack_chart(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
