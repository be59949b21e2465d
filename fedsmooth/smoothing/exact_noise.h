// Gaussian noise without rounding errors, after Voracek and Hein (ICLR 2023). In floating point
// x + e is a draw from a lattice that depends on x, and the theorem behind a certificate is about
// real numbers. Here the base classifier clips and rounds its input to whole 255ths,
//
//     f'(z) = f(Q(clip(z))),    f' a function of real z,
//
// so that for an image of bytes Q(x + e) = x + k / 255 with integers k, whose law is known:
// P[k] = Phi((k + 1/2) / (255 sigma)) - Phi((k - 1/2) / (255 sigma)). They are drawn by comparing
// 64 random bits with the edges of these cells, and 64 more where these do not decide it.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

class ExactNoise {
 public:
  /// An Error if sigma is above kMaxSigma, for which the table of cells would be large.
  explicit ExactNoise(double sigma);

  /// The cell k of 64 random bits; kUndecided where an edge, which is known up to an error of
  /// kMargin / 2^64, could be on either side of them.
  int32_t cell(uint64_t bits) const;
  /// The same with 64 more bits, which are then drawn: undecided with a probability below 1e-30.
  int32_t cell(uint64_t bits, uint64_t further) const;

  /// Copies clip(x + k / 255), as a NoiseSource writes them. An Error unless x is made of bytes
  /// over 255.
  void add(const Array& x, Stream stream, int64_t first, int64_t count, Array& noisy) const;

  static constexpr int32_t kUndecided = INT32_MIN;
  static constexpr uint64_t kMargin = 16;
  static constexpr double kMaxSigma = 16;

  /// Inputs are clipped to [-reach(), 1 + reach()].
  int32_t reach() const { return reach_; }
  double sigma() const { return sigma_; }

  // Its tables, for who draws elsewhere.

  int32_t lowest() const { return lowest_; }
  const std::vector<uint64_t>& edges() const { return edges_; }
  /// Number of edges certainly below each 1024th of the bits, and of all.
  const std::vector<uint32_t>& start() const { return start_; }
  /// The edges with 128 bits, their high and low halves in turn.
  std::vector<uint64_t> fine_edges() const;

  /// An Error unless x is made of bytes over 255.
  static void check_bytes(const Array& x);

 private:
  int32_t reach_;
  int32_t lowest_;               // the first cell; it takes all below it, as the last all above
  std::vector<uint64_t> edges_;  // 2^64 Phi between cells lowest_ + i and lowest_ + i + 1
  std::vector<uint32_t> start_;  // by the upper bits: how many edges are certainly below
  double sigma_;
};

}  // namespace fedsmooth
