// Lists of examples that are not SmoothAdv's, for the table in objective.cpp. Each takes a
// minibatch b and noises delta [B, m, C, H, W].
#pragma once

#include "fedsmooth/federated/local_step.h"

namespace fedsmooth {

/// x, x + delta_1, ..., x + delta_m.
Examples list_clean_and_noisy(LocalStep& step, const Batch& b, const Array& delta);

/// x + delta_1, ..., x + delta_m, x~ + delta_1, ..., x~ + delta_m with x~ = (1 - mix) x + mix
/// x_adv, where mix is uniform in [0, 1/2) and x_adv is where mix_ascent() leads. For large sigma x
/// is replaced by its first step; see mix_first_step().
Examples list_mixed(LocalStep& step, const Batch& b, const Array& delta);

}  // namespace fedsmooth
