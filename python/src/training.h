// What trainings that Python starts share.
#pragma once

#include <functional>

#include "fedsmooth/records/rounds.h"
#include "python/src/context.h"

namespace fedsmooth::python {

/// Calls `on_round`, which the caller holds, after every round; empty if it is None.
std::function<void(const RoundRow&)> hear_rounds(const nb::object& on_round);

}  // namespace fedsmooth::python
