// A job's context whose progress Python shows.
#pragma once

#include <string>

#include "fedsmooth/jobs/context.h"
#include "python/src/background.h"

namespace fedsmooth::python {

/// `progress` is None, or a function (what, done, total) whose result has step(note) and close();
/// `warn` a function of a line, called from any thread.
jobs::Context make_context(const std::string& device, int threads, const StopFlag& stop,
                           const nb::object& progress, const nb::object& warn);

}  // namespace fedsmooth::python
