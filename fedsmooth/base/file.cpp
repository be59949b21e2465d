#include "fedsmooth/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "fedsmooth/base/error.h"

namespace fedsmooth {

std::string read_file(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) throw Error("{}: no such file", path.string());
  if (!std::filesystem::is_regular_file(path, status)) {
    throw Error("{}: not a regular file", path.string());
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  std::string bytes(std::filesystem::file_size(path), '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (in.gcount() != static_cast<std::streamsize>(bytes.size())) {
    throw Error("{}: cannot be read to its end", path.string());
  }
  return bytes;
}

namespace {

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw Error("{}: cannot be written: {}", path.string(), std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(descriptor) != 0) {
    throw Error("{}: cannot be flushed: {}", path.string(), std::strerror(errno));
  }
}

constexpr std::string_view kUnfinished = ".tmp";

// A new file beside `path`, named after it and the process, in `temporary`. Never one that is
// there, and never through a link.
int open_beside(const std::filesystem::path& path, std::filesystem::path& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary =
        fmt::format("{}{}{}", path.string(), kUnfinished, ::getpid() + 10'000'000LL * attempt);
    const int descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (descriptor >= 0) return descriptor;
    if (errno != EEXIST || attempt == 100) {
      throw Error("{}: cannot be written: {}", path.string(), std::strerror(errno));
    }
  }
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code status;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), status);
  std::filesystem::path temporary;
  const int descriptor = open_beside(path, temporary);
  try {
    write_all(descriptor, bytes, path);
  } catch (...) {
    ::close(descriptor);
    std::filesystem::remove(temporary, status);
    throw;
  }
  ::close(descriptor);
  std::filesystem::rename(temporary, path, status);
  if (status) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw Error("{}: cannot be written: {}", path.string(), status.message());
  }
}

void flush_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int status = descriptor < 0 ? -1 : ::fsync(descriptor);
  const int why = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (status != 0) throw Error("{}: cannot be flushed: {}", path.string(), std::strerror(why));
}

void remove_unfinished(const std::filesystem::path& folder,
                       std::initializer_list<std::string_view> names) {
  if (!std::filesystem::is_directory(folder)) return;
  const auto is_unfinished = [&](std::string_view file) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      if (!file.starts_with(name) || !file.substr(name.size()).starts_with(kUnfinished))
        return false;
      const std::string_view number = file.substr(name.size() + kUnfinished.size());
      return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
    });
  };
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const bool plain = entry.is_regular_file() && !entry.is_symlink();
    if (plain && is_unfinished(entry.path().filename().string())) {
      std::filesystem::remove(entry.path());
    }
  }
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  // File systems without locks go without.
  if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw Error("{}: another process is at work there; wait until it is done", folder.string());
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileLock::FileLock(const std::filesystem::path& path) : lock_(path.string() + ".lock") {
  std::error_code status;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), status);
  while (true) {
    descriptor_ = ::open(lock_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (descriptor_ < 0) {
      throw Error("{}: cannot be written: {}", path.string(), std::strerror(errno));
    }
    held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    if (!held_ && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw Error("{}: another process is writing it; wait until it is done", path.string());
    }
    // Whoever had the lock may have removed the file between the two calls.
    struct stat opened = {}, there = {};
    if (::fstat(descriptor_, &opened) == 0 && ::stat(lock_.c_str(), &there) == 0 &&
        opened.st_ino == there.st_ino && opened.st_dev == there.st_dev) {
      return;
    }
    ::close(descriptor_);
  }
}

FileLock::~FileLock() {
  ::unlink(lock_.c_str());
  ::close(descriptor_);
}

}  // namespace fedsmooth
