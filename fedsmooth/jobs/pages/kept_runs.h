// Runs that a study keeps as one archive. Its folder has a page, figures, figures.toml and
// runs.tar.gz, in which every run is a folder of text files. Paths beside the archive are read from
// it, as if it were unpacked there.
#pragma once

#include <filesystem>
#include <optional>

namespace fedsmooth::jobs {

/// Returns the path of a study folder's runs.tar.gz; empty if there is none.
std::filesystem::path archive_in(const std::filesystem::path& folder);

/// A run, or a file of one, in an archive.
struct ArchivedPath {
  std::filesystem::path archive;
  std::filesystem::path inside;  // relative to the archive's folder
};

/// Returns the place of a path that does not exist in the archive of the nearest existing folder
/// above it. None if the path exists or that folder has no archive. Whether the archive has such a
/// file is not checked: UnpackedRuns does that.
std::optional<ArchivedPath> find_archived(const std::filesystem::path& path);

/// Runs of an archive, unpacked into a temporary folder that the destructor removes. The
/// constructors throw an Error if the archive cannot be read or has a name that leads out of it.
class UnpackedRuns {
 public:
  /// Unpacks all runs.
  explicit UnpackedRuns(const std::filesystem::path& archive);
  /// Unpacks the run that has `path`. Throws an Error if the archive does not have `path`.
  explicit UnpackedRuns(const ArchivedPath& path);
  ~UnpackedRuns();
  UnpackedRuns(const UnpackedRuns&) = delete;
  UnpackedRuns& operator=(const UnpackedRuns&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  /// Unpacks the files of the folder `run`; all if it is empty.
  void unpack(const std::filesystem::path& archive, const std::filesystem::path& run);

  std::filesystem::path folder_;
};

}  // namespace fedsmooth::jobs
