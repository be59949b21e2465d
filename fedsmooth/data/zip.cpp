#include "fedsmooth/data/zip.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/inflate.h"

namespace fedsmooth {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr size_t kLocalSize = 30, kEntrySize = 46, kEndSize = 22;
constexpr uint32_t kSeeExtra = 0xffffffff;  // the value is in the zip64 field
constexpr uint32_t kZip64 = 0x0001;
constexpr uint32_t kEncrypted = 1;
constexpr uint32_t kStored = 0, kDeflated = 8;

Error damaged_zip(const std::string& name, const char* what) {
  return Error("{}: not a whole .npz (zip) file: {}; write it again", name, what);
}

/// Numbers of a file, the smallest byte first; an offset beyond the end is an Error.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  uint64_t number(size_t at, size_t size) const {
    const std::string_view field = text(at, size);
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(field[i]);
    return value;
  }
  uint32_t two(size_t at) const { return static_cast<uint32_t>(number(at, 2)); }
  uint32_t four(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  std::string_view text(size_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) throw damaged_zip(name_, "it ends early");
    return bytes_.substr(at, size);
  }

 private:
  std::string_view bytes_;
  const std::string& name_;
};

/// Where the end record is: at the end, or before a comment of at most 64 KiB.
size_t find_end(std::string_view file, const std::string& name) {
  const Fields fields(file, name);
  for (size_t comment = 0; comment <= 0xffff && comment + kEndSize <= file.size(); ++comment) {
    const size_t at = file.size() - kEndSize - comment;
    if (fields.four(at) == kEndMark && fields.two(at + 20) == comment) return at;
  }
  throw damaged_zip(name, "it has no directory");
}

/// Sizes and offset that do not fit into 32 bits, or that the writer did not know to fit, are in a
/// field of their own, in this order, those alone.
void take_zip64(std::string_view extra, ZipMember& member, const std::string& name) {
  const Fields fields(extra, name);
  for (size_t at = 0; at < extra.size();) {
    const uint32_t tag = fields.two(at), size = fields.two(at + 2);
    const Fields field(fields.text(at + 4, size), name);
    at += 4 + size;
    if (tag != kZip64) continue;
    size_t next = 0;
    for (uint64_t* value : {&member.size, &member.packed_size, &member.offset}) {
      if (*value != kSeeExtra) continue;
      *value = field.number(next, 8);
      next += 8;
    }
  }
}

}  // namespace

std::vector<ZipMember> list_zip(std::string_view file, const std::string& name) {
  const Fields fields(file, name);
  const size_t end = find_end(file, name);
  const uint32_t count = fields.two(end + 10);
  if (fields.two(end + 4) != 0 || fields.two(end + 8) != count) {
    throw Error("{}: a zip file of several volumes; write it as one", name);
  }
  size_t at = fields.four(end + 16);
  if (at == kSeeExtra || count == 0xffff) {
    throw Error("{}: a zip file of 4 GiB or more, which is not read; split it", name);
  }
  std::vector<ZipMember> members;
  for (uint32_t i = 0; i < count; ++i) {
    if (fields.four(at) != kEntryMark) throw damaged_zip(name, "its directory is damaged");
    const uint32_t name_size = fields.two(at + 28), extra = fields.two(at + 30);
    ZipMember member = {std::string(fields.text(at + kEntrySize, name_size)),
                        fields.two(at + 10),
                        fields.four(at + 16),
                        fields.four(at + 20),
                        fields.four(at + 24),
                        fields.four(at + 42)};
    if (fields.two(at + 8) & kEncrypted) throw Error("{}: is encrypted", name);
    take_zip64(fields.text(at + kEntrySize + name_size, extra), member, name);
    members.push_back(std::move(member));
    at += kEntrySize + name_size + extra + fields.two(at + 32);
  }
  return members;
}

std::string read_zip_member(std::string_view file, const ZipMember& member,
                            const std::string& name) {
  const Fields fields(file, name);
  if (member.offset > file.size() || fields.four(member.offset) != kLocalMark) {
    throw damaged_zip(name, "a member is not where the directory says");
  }
  const size_t start =
      member.offset + kLocalSize + fields.two(member.offset + 26) + fields.two(member.offset + 28);
  const std::string_view packed = fields.text(start, member.packed_size);
  std::string bytes;
  if (member.method == kStored) {
    if (member.packed_size != member.size) throw damaged_zip(name, "a stored member has two sizes");
    bytes = packed;
  } else if (member.method == kDeflated) {
    bytes = inflate_raw(packed, member.size, name);
  } else {
    throw Error("{}: packed by method {}, only stored and deflated members are read", name,
                member.method);
  }
  if (crc32_of(bytes) != member.crc) throw damaged_zip(name, "a member's check sum is wrong");
  return bytes;
}

}  // namespace fedsmooth
