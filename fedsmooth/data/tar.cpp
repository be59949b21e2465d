#include "fedsmooth/data/tar.h"

#include <algorithm>
#include <cstdint>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

constexpr size_t kBlock = 512;

Error damaged_tar(const std::string& name, const char* what) {
  return Error("{}: not a whole tar archive: {}; download it again", name, what);
}

/// Up to the first zero byte.
std::string text_at(std::string_view header, size_t at, size_t size) {
  const std::string_view field = header.substr(at, size);
  return std::string(field.substr(0, field.find('\0')));
}

/// Octal digits between spaces and zero bytes.
uint64_t number_at(std::string_view header, size_t at, size_t size, const std::string& name) {
  uint64_t value = 0;
  for (const char c : header.substr(at, size)) {
    if (c == ' ' || c == '\0') continue;
    if (c < '0' || c > '7') throw damaged_tar(name, "a header is damaged");
    value = 8 * value + static_cast<uint64_t>(c - '0');
  }
  return value;
}

std::string file_name(std::string_view header) {
  const std::string prefix = text_at(header, 345, 155);
  const bool has_prefix =
      header.substr(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty();
  return (has_prefix ? prefix + "/" : "") + text_at(header, 0, 100);
}

/// The sum of the header's bytes, those of the sum itself taken as spaces.
uint64_t header_sum(std::string_view header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<uint8_t>(header[i]);
  }
  return sum;
}

}  // namespace

std::vector<TarFile> list_tar(std::string_view archive, const std::string& name) {
  std::vector<TarFile> files;
  const auto bytes_of = [&](const std::string& earlier) {
    const auto found = std::ranges::find(files, earlier, &TarFile::name);
    if (found == files.end()) throw damaged_tar(name, "a link leads to no file before it");
    return found->bytes;
  };
  while (true) {
    if (archive.size() < kBlock) throw damaged_tar(name, "it ends early");
    const std::string_view header = archive.substr(0, kBlock);
    if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) return files;
    if (header_sum(header) != number_at(header, 148, 8, name)) {
      throw damaged_tar(name, "a header's sum is wrong");
    }
    const uint64_t size = number_at(header, 124, 12, name);
    archive.remove_prefix(kBlock);
    if (size > archive.size()) throw damaged_tar(name, "it ends early");
    const char type = header[156];
    if (type == '0' || type == '\0') {
      files.push_back({file_name(header), archive.substr(0, size)});
    } else if (type == '1') {
      files.push_back({file_name(header), bytes_of(text_at(header, 157, 100))});
    } else if (type != '5' && type != 'x' && type != 'g') {  // folder; notes of POSIX tar
      throw Error("{}: {:?} is neither a file nor a folder", name, text_at(header, 0, 100));
    }
    archive.remove_prefix(
        std::min<uint64_t>((size + kBlock - 1) / kBlock * kBlock, archive.size()));
  }
}

}  // namespace fedsmooth
