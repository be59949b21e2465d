// Files as others write them, made in memory: NumPy arrays, zip, gzip and tar archives, IDX.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/inflate.h"

namespace fedsmooth {

using NamedBytes = std::vector<std::pair<std::string, std::string>>;

/// `size` bytes of a number, the smallest first.
inline std::string little(uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
  return bytes;
}

/// Deflated by zlib: `window_bits` is -15 for raw data, 31 for a gzip file.
inline std::string deflate_bytes(std::string bytes, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string make_gzip(const std::string& bytes) { return deflate_bytes(bytes, 31); }

/// As numpy.savez writes it, with the sizes in the directory, or numpy.savez_compressed.
inline std::string make_zip(const NamedBytes& members, bool deflated) {
  std::string file, directory;
  for (const auto& [name, bytes] : members) {
    const std::string packed = deflated ? deflate_bytes(bytes, -15) : bytes;
    const std::string common = little(20, 2) + little(0, 2) + little(deflated ? 8 : 0, 2) +
                               little(0, 4) + little(crc32_of(bytes), 4) +
                               little(packed.size(), 4) + little(bytes.size(), 4) +
                               little(name.size(), 2);
    directory += "PK\1\2" + little(20, 2) + common + little(0, 12) + little(file.size(), 4) + name;
    file += "PK\3\4" + common + little(0, 2) + name + packed;
  }
  return file + directory + "PK\5\6" + little(0, 4) + little(members.size(), 2) +
         little(members.size(), 2) + little(directory.size(), 4) + little(file.size(), 4) +
         little(0, 2);
}

/// Version 1 with the header that NumPy writes.
inline std::string make_npy(const std::string& type, const Sizes& sizes, const std::string& bytes) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   type, fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + little(header.size(), 2) + header + bytes;
}

inline std::string make_idx(const Sizes& sizes, const std::string& bytes) {
  std::string file = {0, 0, 8, static_cast<char>(sizes.size())};
  for (const int64_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  }
  return file + bytes;
}

/// With `target`, the second name of a file that tar stored as `target`.
inline std::string make_tar(const NamedBytes& files, char type = '0',
                            const std::string& target = "") {
  std::string archive;
  for (const auto& [name, bytes] : files) {
    std::string header = name;
    header.resize(124);
    header += fmt::format("{:011o}", bytes.size());
    header.resize(148);
    header += "        ";
    header += type + target;
    header.resize(257);
    header += std::string(
        "ustar\0"
        "00",
        8);
    header.resize(512);
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    header.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    archive += header + bytes;
    archive.resize((archive.size() + 511) / 512 * 512);
  }
  return archive + std::string(1024, '\0');
}

/// Bytes that differ from place to place.
inline std::string ramp_bytes(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(7 * i + i / 251);
  return bytes;
}

}  // namespace fedsmooth
