#pragma once

#include <string>

namespace fedsmooth {

/// "0.1.0", the commit that was built ("unknown" outside a checkout) and the LibTorch it runs with.
std::string version();
std::string commit();
std::string torch_version();

/// Now, in UTC, as 2026-01-31T12:34:56Z.
std::string utc_now();

}  // namespace fedsmooth
