// A progress bar with rate and time left on a terminal, a plain line now and then elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fedsmooth/jobs/context.h"

namespace fedsmooth::cli {

/// Prints a line on stderr. If it cannot be written it is lost; no exception is thrown.
void print_error(const std::string& line);

/// Prints a line on stderr, in place of the progress bar if one is shown.
void print_status(const std::string& line);

/// `done` of `total` steps were done by an earlier run and do not count for the rate.
std::unique_ptr<jobs::Progress> show_progress(const std::string& what, int64_t done, int64_t total);

}  // namespace fedsmooth::cli
