// Reads members of a zip file, stored or deflated, and checks their CRC-32. See npz.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct ZipMember {
  std::string name;
  uint32_t method, crc;  // method 0: stored; 8: deflated
  uint64_t packed_size, size;
  uint64_t offset;  // of the member's header in the file
};

/// Returns the directory at the end of the file. Throws an Error that begins with `name` for
/// encrypted members, several volumes and files of 4 GiB or more.
std::vector<ZipMember> list_zip(std::string_view file, const std::string& name);

/// Returns the unpacked bytes of one member.
std::string read_zip_member(std::string_view file, const ZipMember& member,
                            const std::string& name);

}  // namespace fedsmooth
