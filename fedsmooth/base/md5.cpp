#include "fedsmooth/base/md5.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fedsmooth {
namespace {

using State = std::array<uint32_t, 4>;

// The first 32 bits of |sin i| for i = 1 .. 64.
std::array<uint32_t, 64> make_constants() {
  std::array<uint32_t, 64> k = {};
  for (int i = 0; i < 64; ++i) {
    k[i] = static_cast<uint32_t>(std::fabs(std::sin(static_cast<long double>(i + 1))) * 0x1p32L);
  }
  return k;
}

uint32_t word_at(const unsigned char* bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 |
         uint32_t{bytes[3]} << 24;
}

void compress(const unsigned char* block, State& state) {
  static const std::array<uint32_t, 64> kConstants = make_constants();
  constexpr int kTurns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  auto [a, b, c, d] = state;
  for (int i = 0; i < 64; ++i) {
    const int round = i / 16;
    uint32_t mixed = 0;
    int word = 0;
    if (round == 0) {
      mixed = (b & c) | (~b & d);
      word = i;
    } else if (round == 1) {
      mixed = (d & b) | (~d & c);
      word = (5 * i + 1) % 16;
    } else if (round == 2) {
      mixed = b ^ c ^ d;
      word = (3 * i + 5) % 16;
    } else {
      mixed = c ^ (b | ~d);
      word = 7 * i % 16;
    }
    const uint32_t sum = a + mixed + kConstants[i] + word_at(block + 4 * word);
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kTurns[round][i % 4]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

}  // namespace

std::string md5(std::string_view bytes) {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t whole = bytes.size() / 64 * 64, rest = bytes.size() - whole;
  for (size_t at = 0; at < whole; at += 64) compress(data + at, state);

  // What is left, a one bit, zeros, and the number of bits: one block or two.
  std::array<unsigned char, 128> tail = {};
  if (rest > 0) std::memcpy(tail.data(), data + whole, rest);
  tail[rest] = 0x80;
  const size_t size = rest < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) tail[size - 8 + i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t at = 0; at < size; at += 64) compress(tail.data() + at, state);

  std::string digits;
  for (const uint32_t word : state) {
    for (int shift = 0; shift < 32; shift += 8)
      digits += fmt::format("{:02x}", word >> shift & 255);
  }
  return digits;
}

}  // namespace fedsmooth
