// Reading and writing of whole files: a reader gets every byte or an Error; a writer leaves either
// the old content or the new one, even if the machine stops in between.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fedsmooth {

/// Returns the content of the file. Throws an Error that names the file if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes a temporary neighbour, flushes it to disk and renames it over `path`. Missing folders are
/// made. On failure, such as a full disk, the temporary file is removed and `path` is unchanged.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Flushes appended bytes of a file to disk. Throws an Error if that fails.
void flush_file(const std::filesystem::path& path);

/// Removes the temporary files that a killed write_file() of one of `names` left in `folder`, and
/// no other file.
void remove_unfinished(const std::filesystem::path& folder,
                       std::initializer_list<std::string_view> names);

/// An exclusive lock on a folder, held until the object is destroyed or the process ends. It keeps
/// out processes that ask for the lock too.
class FolderLock {
 public:
  /// Throws an Error if another process holds the lock.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// An exclusive lock for writing a file that may be replaced by a rename. It locks the file
/// `path`.lock, and removes that file at the end. The constructor throws an Error if another
/// process holds the lock.
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
