// The server's average, sum_k (n_k / n) theta_k, in fixed point: each client adds
// llrint((n_k / n) w 2^50) to 64-bit integers. Integer addition is exact in any order, so threads,
// waves and machines give the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Whether every value is finite and within +-2^12. Weights that are not take part in no average.
bool usable(const Weights& weights);

class FixedPointSum {
 public:
  /// Adds `share` times the weights. If they are not usable(), drops them and returns false.
  bool add(const Weights& weights, double share);
  /// Counts a client whose weights are not usable().
  void drop() { ++dropped_; }
  void add(const FixedPointSum& other);
  /// The same from sums made elsewhere: each entry and `share` add up what llrint(share_k 2^50 w)
  /// and llrint(share_k 2^50) are for clients k.
  void add(const long long* sums, int64_t count, int64_t share, int64_t dropped);

  static constexpr double kUnit = 0x1p50;
  static constexpr float kLargest = 0x1p12f;  // 2^12 2^50 still fits, whatever the shares

  double kept_share() const;
  int64_t dropped() const { return dropped_; }
  /// What add() of sums made elsewhere takes. Empty as long as no client was kept.
  const std::vector<long long>& sums() const { return sums_; }
  int64_t share() const { return share_; }

  /// The average over the kept clients, in the shapes of `like`.
  Weights average(const Weights& like) const;

 private:
  std::vector<long long> sums_;
  int64_t share_ = 0;  // in units of 2^-50, as exact as the sums
  int64_t dropped_ = 0;
};

}  // namespace fedsmooth
