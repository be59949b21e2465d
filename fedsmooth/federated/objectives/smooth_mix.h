// SmoothMix's ascent, for all engines.
#pragma once

#include "fedsmooth/federated/client.h"

namespace fedsmooth {

/// Unit steps on the smoothed classifier, without a ball.
AttackOptions mix_ascent(const LocalTask& task);

/// How far the first step moves the image itself, for large sigma; 0: it stays.
double mix_first_step(const LocalTask& task);

}  // namespace fedsmooth
