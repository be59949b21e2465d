// Downloads files by running the program curl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

/// Downloads `address` (http, https, ftp or file) to `path`. The folder must be the caller's alone:
/// `path`.headers and `path`.errors are written there, too. Redirections are followed, from https
/// only to https. Throws an Error with curl's message if the transfer fails, stalls for a minute or
/// exceeds `limit` bytes, and Interrupted when stopped.
void download(const std::string& address, const std::filesystem::path& path, int64_t limit,
              const Context& context);

}  // namespace fedsmooth::jobs
