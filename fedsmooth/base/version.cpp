#include "fedsmooth/base/version.h"

#include <commit.h>  // made by cmake/commit.cmake
#include <fmt/chrono.h>

#include <ctime>

namespace fedsmooth {

std::string version() { return FEDSMOOTH_VERSION; }

std::string commit() { return FEDSMOOTH_COMMIT; }

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace fedsmooth
