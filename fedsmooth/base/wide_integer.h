// Sums of integers up to 2^150 in four 64-bit words, S = sum_j words[j] 2^(40 j). Each integer adds
// one signed digit of 40 bits to each word, and nothing is carried before the sum is read: words of
// parts of a sum add up, in any order and modulo 2^64, to the words of the whole, as long as no
// more than kMostWide integers were added.
#pragma once

#include <cmath>
#include <cstdint>

#include "fedsmooth/base/host_device.h"

namespace fedsmooth {

inline constexpr int kWideWords = 4, kWideBits = 40;
inline constexpr int64_t kMostWide = 1 << 22;  // integers in a sum

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

/// The sum as a double, whatever carries its words need: the nearest one where the sum is below
/// 2^80, as that of a long long would be.
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
