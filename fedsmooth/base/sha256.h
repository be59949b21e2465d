// SHA-256, which identifies models, data and tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fedsmooth {

/// Incremental SHA-256 (FIPS 180-4).
class Sha256 {
 public:
  void update(const void* bytes, size_t size);
  /// Returns the digest of all bytes so far, as 64 hexadecimal digits.
  std::string hex() const;

 private:
  void compress(const unsigned char* block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char tail_[64] = {};
  uint64_t size_ = 0;
};

/// Returns the digest of `bytes`, as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace fedsmooth
