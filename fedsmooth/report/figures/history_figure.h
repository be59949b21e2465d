// Training round by round: strips one below the other that share the axis of rounds and the legend.
// Runs without rounds are left out; the others keep the colours that they have in other figures.
#pragma once

#include <vector>

#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Loss, noisy accuracy if some round was evaluated, seconds. Refuses runs without any round.
Figure training_figure(const std::vector<RunRecord>& runs);

/// How far the attack goes and what it does; the gradient's cosine if it was measured. Leaves out
/// runs without an attack too, and refuses to leave out all.
Figure attack_figure(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
