// Deflated bytes, unpacked by zlib: members of zip files, and gzip files. What does not unpack to
// exactly what is announced is refused; nothing is allocated that the packed bytes cannot hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fedsmooth {

/// Raw deflated data, all of it, which must give `size` bytes. An Error begins with `name`.
std::string inflate_raw(std::string_view packed, uint64_t size, const std::string& name);

/// A gzip file of one member; an Error if it would give more than `limit` bytes.
std::string gunzip(std::string_view packed, size_t limit, const std::string& name);

/// The CRC-32 that zip files and gzip files carry.
uint32_t crc32_of(std::string_view bytes);

}  // namespace fedsmooth
