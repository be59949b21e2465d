#include "fedsmooth/base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

std::optional<int64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // no such file, or "max"
}

int64_t available_to_all(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::stoll(line.substr(13)) * 1024;
  }
  return kUnknown;
}

// Version 2 of control groups. Pages of files can be given back, so they do not count as used.
int64_t available_to_group(const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line) && !line.starts_with("0::/")) continue;
  if (!line.starts_with("0::/")) return kUnknown;
  const fs::path top = root / "sys/fs/cgroup";
  int64_t least = kUnknown;
  for (fs::path group = top / line.substr(4); group.native().size() >= top.native().size();
       group = group.parent_path()) {
    const auto limit = read_number(group / "memory.max"),
               used = read_number(group / "memory.current");
    if (!limit || !used) continue;
    int64_t files = 0;
    std::ifstream statistics(group / "memory.stat");
    for (std::string entry; std::getline(statistics, entry);) {
      if (entry.starts_with("inactive_file ")) files = std::stoll(entry.substr(14));
    }
    least = std::min(least, std::max<int64_t>(0, *limit - *used + files));
  }
  return least;
}

}  // namespace

int64_t available_memory(const fs::path& root) {
  return std::min(available_to_all(root), available_to_group(root));
}

}  // namespace fedsmooth
