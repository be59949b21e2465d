#include "fedsmooth/smoothing/exact_noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fedsmooth/base/check.h"

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

}  // namespace

ExactNoise::ExactNoise(double sigma) {
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
}

int32_t ExactNoise::cell(uint64_t bits) const {
  size_t i = start_[bits >> (64 - kStartBits)];
  while (i < edges_.size() && edges_[i] < bits && bits - edges_[i] > kMargin) ++i;
  const bool below = i == edges_.size() || (edges_[i] > bits && edges_[i] - bits > kMargin);
  return below ? lowest_ + static_cast<int32_t>(i) : kUndecided;
}

bool ExactNoise::add(const Array& x, Stream stream, int64_t first, int64_t count,
                     Array& noisy) const {
  check_copies(x, first, count, noisy);
  const std::vector<int32_t> bytes = bytes_of(x);
  const auto size = static_cast<int64_t>(bytes.size());
  std::vector<uint32_t> words(2 * size);
  float* out = noisy.floats();
  bool decided = true;
  for (int64_t i = 0; i < count; ++i, out += size) {
    fill_words(stream, static_cast<uint32_t>(first + i), words.data(), 2 * size);
    for (int64_t j = 0; j < size; ++j) {
      const int32_t k = cell(uint64_t{words[2 * j]} << 32 | words[2 * j + 1]);
      decided = decided && k != kUndecided;
      const int32_t z = std::clamp(bytes[j] + k, -255 * reach_, 255 * (reach_ + 1));
      out[j] = static_cast<float>(z) / 255;
    }
  }
  return decided;
}

BaseClassifier with_exact_noise(BaseClassifier f, double sigma) {
  if (f.sampler) {
    throw Error("exact noise is drawn on CPU cores; {} draws its own", f.description);
  }
  f.noise_kind = NoiseKind::kExact;
  f.noise = [noise = std::make_shared<ExactNoise>(sigma), sigma](const Array& x, double asked,
                                                                 Stream stream, int64_t first,
                                                                 int64_t count, Array& noisy) {
    check(asked == sigma, "exact noise of sigma {} was asked for {}", sigma, asked);
    return noise->add(x, stream, first, count, noisy);
  };
  return f;
}

}  // namespace fedsmooth
