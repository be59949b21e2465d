// A sum of real numbers that does not depend on their order: integer parts, and fractions in units
// of 2^-32, are added up separately as integers. So any number of threads, waves and machines
// reports the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace fedsmooth {

class OrderFreeSum {
 public:
  OrderFreeSum() = default;
  OrderFreeSum(double value) { *this += value; }  // NOLINT(google-explicit-constructor): a number

  /// Adds a number. One that is not finite or beyond +-2^40 makes the sum NaN.
  OrderFreeSum& operator+=(double value) {
    if (!(std::abs(value) <= 0x1p40)) {
      ++not_finite_;
      return *this;
    }
    const double whole = std::floor(value);
    whole_ += static_cast<int64_t>(whole);
    fraction_ += std::llrint((value - whole) * 0x1p32);
    return *this;
  }

  /// Calls `visit` with each of the integers that a sum consists of. Two sums are added by adding
  /// these integers.
  template <typename Self, typename Visit>
  static constexpr void visit_words(Self& sum, const Visit& visit) {
    visit(sum.whole_), visit(sum.fraction_), visit(sum.not_finite_);
  }

  double value() const {
    if (not_finite_ > 0) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(whole_) + static_cast<double>(fraction_) * 0x1p-32;
  }

  bool operator==(const OrderFreeSum&) const = default;

 private:
  int64_t whole_ = 0, fraction_ = 0, not_finite_ = 0;
};

}  // namespace fedsmooth
