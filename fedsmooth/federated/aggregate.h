// The server's average, sum_k (n_k / n) theta_k, in fixed point: each client adds
// llrint((n_k / n) w 2^50) to integers. Integer addition is exact in any order, so threads, waves
// and machines give the same bits. A trained weight has one 64-bit word; a running statistic, which
// may be large, has the four of base/wide_integer.h.
#pragma once

#include <cfloat>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/base/wide_integer.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// The largest magnitude of a trained weight and of a running statistic.
struct ValueBounds {
  float trained, statistic;
};
/// The bounds of an average: 2^12 2^50 fits into one word and 1e30 2^50 into four, for any shares.
inline constexpr ValueBounds kAveraged = {0x1p12f, 1e30f};
inline constexpr ValueBounds kFinite = {FLT_MAX, FLT_MAX};

/// Returns the name of the first tensor with a value that is not finite, beyond its bound, or a
/// variance below zero, and which of the three it is; nothing if there is none. `known` are the
/// network's parameters().
std::optional<std::string> out_of_bounds(const Weights& weights,
                                         const std::vector<Parameter>& known, ValueBounds bounds);

/// The numbers of values in a sum. It has one word for each trained weight, in the order of the
/// tensors, followed by kWideWords words for each running statistic.
struct SumSizes {
  SumSizes(const Weights& like, const std::vector<Parameter>& known);
  int64_t words() const { return trained + kWideWords * statistics; }
  int64_t trained = 0, statistics = 0;
  std::vector<bool> is_variance;  // for each running statistic
};

/// Adds llrint(scale values[i]) to words[i], or for running statistics (`trained` false) to the
/// kWideWords words of value i.
void add_scaled(const float* values, int64_t count, double scale, bool trained, long long* words);
/// Writes out[i] = (sum i of `words`) / share.
void divide_sums(const long long* words, int64_t count, double share, bool trained, float* out);

class FixedPointSum {
 public:
  /// Adds `share` times the weights, which must be within kAveraged.
  void add(const Weights& weights, const std::vector<Parameter>& known, double share);
  void add(const FixedPointSum& other);
  /// Adds the words() of another sum; `share` is its share(), in units of 2^-50.
  void add(const long long* words, int64_t count, int64_t share);

  static constexpr double kUnit = 0x1p50;

  /// Returns the sum of the shares that were added.
  double kept_share() const;
  /// Returns the sums as words, which the add() of words accepts. Empty before the first client.
  const std::vector<long long>& words() const { return words_; }
  int64_t share() const { return share_; }

  /// Returns the average over the clients that were added, in the shapes of `like`.
  Weights average(const Weights& like, const std::vector<Parameter>& known) const;

 private:
  std::vector<long long> words_;
  int64_t share_ = 0;  // in units of 2^-50, as exact as the sums
};

}  // namespace fedsmooth
