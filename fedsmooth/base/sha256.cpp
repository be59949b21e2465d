#include "fedsmooth/base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace fedsmooth {
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
