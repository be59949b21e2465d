#include "fedsmooth/base/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits
constexpr uint64_t kBestRatio = 1032;            // of deflate: 258 bytes from two bits

/// Owns zlib's state.
class Inflater {
 public:
  Inflater(std::string_view packed, int window_bits) : packed_(packed) {
    check(inflateInit2(&stream_, window_bits) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills as much of the buffer as the data give. False: they are damaged.
  bool fill(char* out, size_t size, size_t& written) {
    written = 0;
    while (written < size && !ended_) {
      const size_t in = std::min(kMostAtOnce, packed_.size()),
                   room = std::min(kMostAtOnce, size - written);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data()));
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = reinterpret_cast<Bytef*>(out + written);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const size_t taken = in - stream_.avail_in, given = room - stream_.avail_out;
      packed_.remove_prefix(taken);
      written += given;
      ended_ = status == Z_STREAM_END;
      if (!ended_ && (status != Z_OK || taken + given == 0)) return false;
    }
    return true;
  }

  /// All was read and the end mark with its sums was seen.
  bool at_end() {
    char none = 0;
    size_t written = 0;
    // The end mark may come after the last byte.
    if (!ended_ && !fill(&none, 1, written)) return false;
    return ended_ && written == 0 && packed_.empty();
  }
  bool ended() const { return ended_; }

 private:
  std::string_view packed_;
  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace

std::string inflate_raw(std::string_view packed, uint64_t size, const std::string& name) {
  if (size / kBestRatio > packed.size()) {
    throw Error("{}: {} packed bytes cannot hold {}; write it again", name, packed.size(), size);
  }
  std::string bytes(size, '\0');
  Inflater inflater(packed, -MAX_WBITS);
  size_t written = 0;
  if (!inflater.fill(bytes.data(), size, written) || written != size || !inflater.at_end()) {
    throw Error("{}: its packed data are damaged; write it again", name);
  }
  return bytes;
}

std::string gunzip(std::string_view packed, size_t limit, const std::string& name) {
  Inflater inflater(packed, MAX_WBITS + 16);
  std::string bytes;
  size_t used = 0;
  while (!inflater.ended()) {
    bytes.resize(std::min(limit + 1, std::max<size_t>(1 << 16, 2 * bytes.size())));
    size_t written = 0;
    if (!inflater.fill(bytes.data() + used, bytes.size() - used, written)) {
      throw Error("{}: not a whole gzip file; download it again", name);
    }
    used += written;
    if (used > limit) throw Error("{}: unpacks to more than {} bytes", name, limit);
  }
  if (!inflater.at_end()) throw Error("{}: has bytes after its end; download it again", name);
  bytes.resize(used);
  return bytes;
}

uint32_t crc32_of(std::string_view bytes) {
  uLong sum = ::crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const size_t taken = std::min(kMostAtOnce, bytes.size());
    sum = ::crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(taken));
    bytes.remove_prefix(taken);
  }
  return static_cast<uint32_t>(sum);
}

}  // namespace fedsmooth
