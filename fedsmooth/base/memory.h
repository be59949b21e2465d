// How much memory the machine has left for this process.
#pragma once

#include <cstdint>
#include <filesystem>

namespace fedsmooth {

/// Bytes that can be had without swapping: what the kernel says is available, or what the limit of
/// this process's control group leaves if that is less. INT64_MAX where neither is told. `root`
/// stands for "/".
int64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace fedsmooth
