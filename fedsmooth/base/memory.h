// Memory that is still available to this process.
#pragma once

#include <cstdint>
#include <filesystem>

namespace fedsmooth {

/// Returns the bytes that can be allocated without swapping: the memory that the kernel reports as
/// available, or what the limit of this process's control group leaves, if that is less. INT64_MAX
/// where neither is known. Tests pass another `root` for "/".
int64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace fedsmooth
