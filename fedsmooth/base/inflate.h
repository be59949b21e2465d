// Unpacks deflated bytes by zlib: members of zip files, and gzip files. Data that do not unpack to
// exactly the announced size are refused, and no more memory is allocated than the packed bytes can
// expand to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fedsmooth {

/// Unpacks raw deflated data, which must yield `size` bytes and end there. Otherwise throws an
/// Error that begins with `name`.
std::string inflate_raw(std::string_view packed, uint64_t size, const std::string& name);

/// Unpacks a gzip file of one member. Throws an Error that begins with `name` if the file is
/// damaged or would yield more than `limit` bytes.
std::string gunzip(std::string_view packed, size_t limit, const std::string& name);

/// Returns the CRC-32 that zip and gzip files store.
uint32_t crc32_of(std::string_view bytes);

}  // namespace fedsmooth
