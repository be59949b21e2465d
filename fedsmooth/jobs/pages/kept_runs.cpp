#include "fedsmooth/jobs/pages/kept_runs.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/inflate.h"
#include "fedsmooth/data/tar.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchive = "runs.tar.gz";
constexpr size_t kMostBytes = size_t{1} << 30;

fs::path make_temporary_folder() {
  std::string name = (fs::temp_directory_path() / "fedsmooth-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error("{}: a temporary folder cannot be made; set TMPDIR", name);
  }
  return name;
}

// Whether a name does not lead out of the folder that the archive is unpacked into.
bool stays_inside(const fs::path& name) {
  return name.is_relative() && !name.empty() &&
         std::ranges::none_of(name, [](const fs::path& part) { return part == ".."; });
}

void write_text(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw Error("{}: cannot be written; is the disk full?", path.string());
}

}  // namespace

fs::path archive_in(const fs::path& folder) {
  const fs::path archive = folder / kArchive;
  return fs::is_regular_file(archive) ? archive : fs::path();
}

std::optional<ArchivedPath> find_archived(const fs::path& path) {
  std::error_code ignored;  // set for a name that is too long: it is no path
  if (path.empty() || fs::exists(path, ignored) || ignored) return std::nullopt;
  fs::path above = fs::absolute(path).lexically_normal();
  const fs::path whole = above;
  while (above != above.parent_path() && !fs::exists(above, ignored)) above = above.parent_path();
  const fs::path archive = archive_in(above);
  if (archive.empty()) return std::nullopt;
  return ArchivedPath{archive, whole.lexically_relative(above)};
}

UnpackedRuns::UnpackedRuns(const fs::path& archive) { unpack(archive, {}); }

UnpackedRuns::UnpackedRuns(const ArchivedPath& path) {
  unpack(path.archive, *path.inside.begin());
  if (fs::exists(folder_ / path.inside)) return;
  fs::remove_all(folder_);
  throw Error("{}: has no {}", path.archive.string(), path.inside.string());
}

UnpackedRuns::~UnpackedRuns() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void UnpackedRuns::unpack(const fs::path& archive, const fs::path& run) {
  const std::string name = archive.string();
  const std::string bytes = gunzip(read_file(archive), kMostBytes, name);
  const std::vector<TarFile> files = list_tar(bytes, name);
  for (const TarFile& file : files) {
    if (!stays_inside(file.name)) throw Error("{}: {:?} leads out of it", name, file.name);
  }
  folder_ = make_temporary_folder();
  try {
    for (const TarFile& file : files) {
      const fs::path path = fs::path(file.name).lexically_normal();
      if (run.empty() || *path.begin() == run) write_text(folder_ / path, file.bytes);
    }
  } catch (...) {
    fs::remove_all(folder_);
    throw;
  }
}

}  // namespace fedsmooth::jobs
