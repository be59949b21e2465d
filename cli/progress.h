// A progress bar with rate and time left on a terminal, a plain line now and then elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fedsmooth/jobs/context.h"

namespace fedsmooth::cli {

/// A line on stderr. What cannot be written there is lost, never an exception.
void print_error(const std::string& line);

/// The same in the place of a bar that may be there.
void print_status(const std::string& line);

/// `done` of `total` steps were done by an earlier run and do not count for the rate.
std::unique_ptr<jobs::Progress> show_progress(const std::string& what, int64_t done, int64_t total);

}  // namespace fedsmooth::cli
