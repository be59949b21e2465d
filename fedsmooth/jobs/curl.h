// Downloads, by the program curl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

/// Writes what is at `address` (http, https, ftp or file) to `path`, which is in a folder of the
/// caller's own: curl's notes lie beside it. Redirections are followed, from https to https only.
/// Transfers that stall for a minute or exceed `limit` bytes are given up. An Error says what curl
/// says; a stop that is asked for is Interrupted.
void download(const std::string& address, const std::filesystem::path& path, int64_t limit,
              const Context& context);

}  // namespace fedsmooth::jobs
