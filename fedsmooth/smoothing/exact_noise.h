// Gaussian noise without rounding errors, after Voracek and Hein (ICLR 2023). In floating point
// x + e lies on a lattice that depends on x, but the theorem behind a certificate is about real
// numbers. Here the base classifier clips and rounds its input to whole 255ths,
//
//     f'(z) = f(Q(clip(z))),    f' a function of real z,
//
// so that for an image of bytes Q(x + e) = x + k / 255 with integers k, whose law is known:
// P[k] = Phi((k + 1/2) / (255 sigma)) - Phi((k - 1/2) / (255 sigma)). They are drawn by comparing
// 64 random bits with the edges of these cells, and 64 more bits where the first do not decide.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// The law for one sigma. Const functions may be called from several threads.
class ExactNoise {
 public:
  /// Throws an Error if sigma is above kMaxSigma, where the table of cells would be large.
  explicit ExactNoise(double sigma);

  /// Returns the cell k of 64 random bits, or kUndecided where an edge, which is known up to an
  /// error of kMargin / 2^64, could be on either side of them.
  int32_t cell(uint64_t bits) const;
  /// Decides with 64 further bits, for bits that are undecided alone. Returns kUndecided with a
  /// probability below 1e-30.
  int32_t cell(uint64_t bits, uint64_t further) const;

  /// Writes copies clip(x + k / 255), with the arguments of a NoiseSource. Throws an Error unless
  /// every value of x is a byte divided by 255.
  void add(const Array& x, Stream stream, int64_t first, int64_t count, Array& noisy) const;

  static constexpr int32_t kUndecided = INT32_MIN;
  static constexpr uint64_t kMargin = 16;
  static constexpr double kMaxSigma = 16;

  /// Inputs are clipped to [-reach(), 1 + reach()].
  int32_t reach() const { return reach_; }
  double sigma() const { return sigma_; }

  // The tables, for implementations that draw on a GPU.

  int32_t lowest() const { return lowest_; }
  const std::vector<uint64_t>& edges() const { return edges_; }
  /// Returns the number of edges certainly below each 1024th of the range of the bits; the last
  /// entry counts all edges.
  const std::vector<uint32_t>& start() const { return start_; }
  /// Returns the edges with 128 bits: high and low halves alternate.
  std::vector<uint64_t> fine_edges() const;

  /// Throws an Error unless every value of x is a byte divided by 255.
  static void check_bytes(const Array& x);

 private:
  int32_t reach_;
  int32_t lowest_;               // the first cell; first and last cell include the tails
  std::vector<uint64_t> edges_;  // 2^64 Phi between cells lowest_ + i and lowest_ + i + 1
  std::vector<uint32_t> start_;  // see start()
  double sigma_;
};

}  // namespace fedsmooth
