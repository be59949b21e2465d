#pragma once

#include <string>

namespace fedsmooth {

/// Return the version, such as "0.2.0", and the commit that was built ("unknown" outside a
/// checkout).
std::string version();
std::string commit();

/// Returns the current time in UTC, such as 2026-01-31T12:34:56Z.
std::string utc_now();

}  // namespace fedsmooth
