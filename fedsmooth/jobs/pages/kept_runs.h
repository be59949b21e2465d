// Runs that a study keeps as one archive. Its folder holds a page, figures, figures.toml and
// runs.tar.gz, in which every run is a folder of texts. Tables are read from the archive as if its
// runs lay beside it.
#pragma once

#include <filesystem>
#include <optional>

namespace fedsmooth::jobs {

/// The archive of a study's folder; an empty path if there is none.
std::filesystem::path archive_in(const std::filesystem::path& folder);

/// A run, or a file of one, in an archive.
struct ArchivedPath {
  std::filesystem::path archive;
  std::filesystem::path inside;  // relative to the archive's folder
};

/// Where a path that does not exist lies in the archive of the nearest folder above it that exists.
/// Nothing if the path exists, or that folder has no archive. Whether the archive holds `inside` is
/// for UnpackedRuns to find out.
std::optional<ArchivedPath> find_archived(const std::filesystem::path& path);

/// Runs of an archive in a temporary folder, which is removed with this object.
class UnpackedRuns {
 public:
  /// Unpacks all runs.
  explicit UnpackedRuns(const std::filesystem::path& archive);
  /// Unpacks the run that `path` is in. Throws an Error if the archive does not have it.
  explicit UnpackedRuns(const ArchivedPath& path);
  ~UnpackedRuns();
  UnpackedRuns(const UnpackedRuns&) = delete;
  UnpackedRuns& operator=(const UnpackedRuns&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  /// Files whose path begins with `run`, a folder; all if it is empty.
  void unpack(const std::filesystem::path& archive, const std::filesystem::path& run);

  std::filesystem::path folder_;
};

}  // namespace fedsmooth::jobs
