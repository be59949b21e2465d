// Sums of integers up to 2^150 in four 64-bit words, S = sum_j words[j] 2^(40 j). Each integer adds
// one signed digit of 40 bits to each word, and carries are resolved only when the sum is read. So
// the words of partial sums add up, in any order and modulo 2^64, to the words of the whole sum, as
// long as at most kMostWide integers were added.
#pragma once

#include <cmath>
#include <cstdint>

#include "fedsmooth/base/host_device.h"

namespace fedsmooth {

inline constexpr int kWideWords = 4, kWideBits = 40;
inline constexpr int64_t kMostWide = 1 << 22;  // most integers in one sum

/// Adds an integer of at most 2^150 in magnitude. Every step is exact.
FEDSMOOTH_HOST_DEVICE inline void add_wide(double integer, long long* words) {
  const double base = 1LL << kWideBits;
  double unit = base * base * base;
  for (int j = kWideWords - 1; j > 0; --j, unit /= base) {
    const double digit = trunc(integer / unit);
    words[j] += static_cast<long long>(digit);
    integer -= digit * unit;
  }
  words[0] += static_cast<long long>(integer);
}

/// Returns the sum as a double, carries resolved. It is the nearest double where the magnitude of
/// the sum is below 2^80.
inline double wide_value(const long long* words) {
  constexpr long long kBase = 1LL << kWideBits;
  long long digits[kWideWords], carry = 0;
  for (int j = 0; j < kWideWords; ++j) {
    const long long sum = words[j] + carry;
    carry = sum >> kWideBits;  // rounds down
    digits[j] = sum - carry * kBase;
  }
  digits[kWideWords - 1] += carry * kBase;
  if (digits[kWideWords - 1] < 0) {
    long long opposite[kWideWords];
    for (int j = 0; j < kWideWords; ++j) opposite[j] = -words[j];
    return -wide_value(opposite);
  }
  double value = 0;
  for (int j = kWideWords - 1; j >= 0; --j) {
    value = value * static_cast<double>(kBase) + static_cast<double>(digits[j]);
  }
  return value;
}

}  // namespace fedsmooth
