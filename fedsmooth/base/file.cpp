#include "fedsmooth/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
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
    throw Error("{}: another process is at work there", folder.string());
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
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw Error("{}: another process is writing it", path.string());
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

namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
struct RoundConstants {
  uint32_t k[64];
  RoundConstants() {
    int found = 0;
    for (int candidate = 2; found < 64; ++candidate) {
      bool prime = true;
      for (int d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
      if (!prime) continue;
      const long double root = std::cbrt(static_cast<long double>(candidate));
      k[found++] = static_cast<uint32_t>((root - std::floor(root)) * 0x1p32L);
    }
  }
};

}  // namespace

void Sha256::compress(const unsigned char* block) {
  static const RoundConstants constants;
  uint32_t w[64];
  for (size_t i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  uint32_t s[8];
  std::copy_n(state_, 8, s);
  // The eight words change places from step to step; after eight steps they are back.
#pragma GCC unroll 64
  for (unsigned i = 0; i < 64; ++i) {
    const auto at = [&s, i](unsigned place) -> uint32_t& { return s[(place + 64 - i) % 8]; };
    const uint32_t a = at(0), b = at(1), c = at(2), e = at(4);
    const uint32_t choice = (e & at(5)) ^ (~e & at(6));
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t t1 = at(7) + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice +
                        constants.k[i] + w[i];
    at(3) += t1;
    at(7) = t1 + (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
  }
  for (int i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::update(const void* bytes, size_t size) {
  const auto* next = static_cast<const unsigned char*>(bytes);
  while (size > 0) {
    const size_t used = size_ % 64;
    const size_t taken = std::min(size, 64 - used);
    if (used == 0 && taken == 64) {
      compress(next);
    } else {
      std::copy_n(next, taken, tail_ + used);
      if (used + taken == 64) compress(tail_);
    }
    size_ += taken;
    next += taken;
    size -= taken;
  }
}

std::string Sha256::hex() const {
  Sha256 padded = *this;
  const uint64_t bits = size_ * 8;
  const unsigned char one = 0x80, zero = 0;
  padded.update(&one, 1);
  while (padded.size_ % 64 != 56) padded.update(&zero, 1);
  for (int shift = 56; shift >= 0; shift -= 8) {
    const auto byte = static_cast<unsigned char>(bits >> shift);
    padded.update(&byte, 1);
  }
  std::string digits;
  for (const uint32_t word : padded.state_) digits += fmt::format("{:08x}", word);
  return digits;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

}  // namespace fedsmooth
