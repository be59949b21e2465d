// Removes what a test wrote. std::filesystem::remove_all is not used: some LibTorches export a
// symbol of that name from another standard library, and a call that lands there crashes.
#pragma once

#include <filesystem>

namespace fedsmooth {

/// The folder with all in it, or the file; nothing if it is not there. Links are not followed.
inline void remove_folder(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path))) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) remove_folder(entry.path());
  }
  std::filesystem::remove(path);
}

}  // namespace fedsmooth
