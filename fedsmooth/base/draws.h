// Random choices drawn from one stream, one after another: integers, subsets, permutations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fedsmooth/base/random.h"

namespace fedsmooth {

class Draws {
 public:
  explicit Draws(Stream stream) : stream_(stream) {}

  uint32_t word();
  /// Uniform in [0, n), without bias. n <= 2^32.
  int64_t below(int64_t n);
  /// Uniform in (0, 1).
  double uniform();
  double normal();
  /// Gamma(shape, 1), shape > 0.
  double gamma(double shape);

  /// Returns `count` different integers of [0, n) in random order.
  std::vector<int64_t> choose(int64_t count, int64_t n);

 private:
  Stream stream_;
  uint32_t words_[64];
  uint32_t sample_ = 0;
  size_t used_ = 64;
};

}  // namespace fedsmooth
