// Files, whole or not at all: readers get every byte or an Error, writers leave either the old
// content or the new one, also when the machine stops in between.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fedsmooth {

/// The whole file; an Error that names it if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes a temporary neighbour, flushes it to disk and renames it over `path`. Missing folders are
/// made. On failure (a full disk, say) the temporary file is removed and `path` is as it was.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Flushes what was appended to a file to disk. An Error if the disk does not take it.
void flush_file(const std::filesystem::path& path);

/// Removes what a kill left of writing one of `names` in `folder`, and nothing else.
void remove_unfinished(const std::filesystem::path& folder,
                       std::initializer_list<std::string_view> names);

/// Keeps other processes that ask for it out of a folder, until it or the process ends.
class FolderLock {
 public:
  /// An Error if another process has it.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// The same for a file that may be replaced, by a lock on `path`.lock, which is removed at the end.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False where the file system has no locks.
  bool held() const { return held_; }

 private:
  std::filesystem::path lock_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace fedsmooth
