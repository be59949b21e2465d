#include "fedsmooth/smoothing/exact_noise.h"

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/normal.h"
#include "fedsmooth/smoothing/noise.h"

namespace fedsmooth {
namespace {

constexpr int kStartBits = 10;
static_assert(std::numeric_limits<long double>::digits >= 64);  // or edges would be beyond kMargin

// 2^64 Phi((k + 1/2) / (255 sigma)), at most 2^64 - 1. The smaller tail is computed, with at most a
// few units of error, and kMargin is more than twice of what that comes to.
uint64_t edge_above(int32_t k, long double sigma) {
  const long double z = (2 * k + 1) / (510 * sigma);
  const auto tail = static_cast<uint64_t>(
      std::floor(0x1p63L * std::erfc(std::fabs(z) / std::sqrt(2.0L))));  // at most 2^63
  return z < 0 ? tail : UINT64_MAX - tail;
}

using Wide = unsigned __int128;
using Real = boost::multiprecision::cpp_bin_float_100;

// P[N(0, 1) > z] for z >= 0 by the series of the error function. Its terms reach e^(z^2 / 2), 1e39
// here, so that some 60 of 100 digits are left.
Real upper_tail(const Real& z) {
  Real term = z, sum = z;
  for (int k = 1; abs(term) > 1e-70 || k < z * z; ++k) {
    term *= -z * z / (2 * k);
    sum += term / (2 * k + 1);
  }
  return Real(0.5) - sum / sqrt(boost::math::constants::two_pi<Real>());
}

// edge_above() with 128 bits.
Wide fine_edge_above(int32_t k, double sigma) {
  const Real z = Real(2 * k + 1) / (510 * Real(sigma)), size = abs(z);
  if (size > 13.3) return z < 0 ? 0 : ~Wide{0};  // the tail is below 2^-128
  Real scaled = ldexp(upper_tail(size), 64);
  const auto high = static_cast<uint64_t>(scaled);
  scaled = ldexp(Real(scaled - high), 64);
  const Wide tail = Wide{high} << 64 | static_cast<uint64_t>(scaled);
  return z < 0 ? tail : ~Wide{0} - tail;
}

// Number of the first edge from `i` on that is not certainly below `bits`, and whether it is
// certainly above.
template <typename Bits, class Edge>
std::pair<size_t, bool> find_edge(Bits bits, size_t i, size_t count, Bits margin,
                                  const Edge& edge) {
  for (; i < count; ++i) {
    const Bits at = edge(i);
    if (!(at < bits && bits - at > margin)) return {i, at > bits && at - bits > margin};
  }
  return {i, true};
}

// The bytes of an image, which are floats over 255.
std::vector<int32_t> bytes_of(const Array& x) {
  std::vector<int32_t> bytes(x.count());
  const float* pixels = x.floats();
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<int32_t>(std::lround(255 * pixels[i]));
    const bool is_byte = 0 <= bytes[i] && bytes[i] <= 255;
    if (!is_byte || static_cast<float>(bytes[i]) / 255 != pixels[i]) {
      throw Error("image: exact noise needs pixel values that are bytes over 255");
    }
  }
  return bytes;
}

// 64 more bits for coordinate j of a sample.
uint64_t further_bits(Stream s, uint32_t sample, int64_t j) {
  const auto block = static_cast<uint32_t>(j / 2) | kFurtherBits;
  const philox4x32_ctr_t words = philox(s.key.value, block, sample, s.item, s.client);
  return uint64_t{words.v[2 * (j % 2)]} << 32 | words.v[2 * (j % 2) + 1];
}

}  // namespace

ExactNoise::ExactNoise(double sigma) : sigma_(sigma) {
  if (!(sigma > 0 && sigma <= kMaxSigma)) {
    throw Error("sigma={}: with exact noise it must be positive and at most {}", sigma, kMaxSigma);
  }
  reach_ = std::max(1, static_cast<int32_t>(std::ceil(6 * sigma)));
  lowest_ = -255 * (reach_ + 1);  // takes every byte to the lower end
  for (int32_t k = lowest_; k < -lowest_; ++k) edges_.push_back(edge_above(k, sigma));
  for (uint64_t bucket = 0; bucket < uint64_t{1} << kStartBits; ++bucket) {
    const uint64_t first = bucket << (64 - kStartBits);
    const auto below = std::partition_point(edges_.begin(), edges_.end(), [&](uint64_t edge) {
      return first > kMargin && edge < first - kMargin;
    });
    start_.push_back(static_cast<uint32_t>(below - edges_.begin()));
  }
  start_.push_back(static_cast<uint32_t>(edges_.size()));
}

void ExactNoise::check_bytes(const Array& x) { bytes_of(x); }

std::vector<uint64_t> ExactNoise::fine_edges() const {
  std::vector<uint64_t> halves(2 * edges_.size());
  const auto put = [&](size_t i, Wide edge) {
    halves[2 * i] = static_cast<uint64_t>(edge >> 64);
    halves[2 * i + 1] = static_cast<uint64_t>(edge);
  };
  // Edge i and the one as far from the other end are 1 together.
  for (size_t i = 0; 2 * i < edges_.size(); ++i) {
    const Wide edge = fine_edge_above(lowest_ + static_cast<int32_t>(i), sigma_);
    put(edges_.size() - 1 - i, ~Wide{0} - edge);
    put(i, edge);
  }
  return halves;
}

int32_t ExactNoise::cell(uint64_t bits) const {
  const auto [i, decided] = find_edge(bits, start_[bits >> (64 - kStartBits)], edges_.size(),
                                      kMargin, [&](size_t j) { return edges_[j]; });
  return decided ? lowest_ + static_cast<int32_t>(i) : kUndecided;
}

int32_t ExactNoise::cell(uint64_t bits, uint64_t further) const {
  const auto [i, decided] =
      find_edge(Wide{bits} << 64 | further, start_[bits >> (64 - kStartBits)], edges_.size(),
                Wide{kMargin}, [&](size_t j) {
                  // Only edges that 64 bits leave open are worth their digits.
                  const uint64_t near = edges_[j] > bits ? edges_[j] - bits : bits - edges_[j];
                  if (near > 2 * kMargin) return Wide{edges_[j]} << 64;
                  return fine_edge_above(lowest_ + static_cast<int32_t>(j), sigma_);
                });
  return decided ? lowest_ + static_cast<int32_t>(i) : kUndecided;
}

void ExactNoise::add(const Array& x, Stream stream, int64_t first, int64_t count,
                     Array& noisy) const {
  check_copies(x, first, count, noisy);
  const std::vector<int32_t> bytes = bytes_of(x);
  const auto size = static_cast<int64_t>(bytes.size());
  std::vector<uint32_t> words(2 * size);
  float* out = noisy.floats();
  for (int64_t i = 0; i < count; ++i, out += size) {
    const auto sample = static_cast<uint32_t>(first + i);
    fill_words(stream, sample, words.data(), 2 * size);
    for (int64_t j = 0; j < size; ++j) {
      const uint64_t bits = uint64_t{words[2 * j]} << 32 | words[2 * j + 1];
      int32_t k = cell(bits);
      if (k == kUndecided) k = cell(bits, further_bits(stream, sample, j));
      const int32_t z = std::clamp(bytes[j] + k, -255 * reach_, 255 * (reach_ + 1));
      out[j] = k == kUndecided ? NAN : static_cast<float>(z) / 255;
    }
  }
}

}  // namespace fedsmooth
