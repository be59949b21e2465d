#include "fedsmooth/base/random.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "fedsmooth/base/normal.h"

namespace fedsmooth {
namespace {

constexpr int64_t kSize = 3072;

std::vector<float> normals(Stream stream, uint32_t sample, int64_t count = kSize) {
  std::vector<float> out(count);
  fill_normal(stream, sample, out.data(), count);
  return out;
}

std::vector<float> many_normals(Stream stream, uint32_t samples) {
  std::vector<float> all;
  for (uint32_t s = 0; s < samples; ++s) {
    const auto row = normals(stream, s);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum / static_cast<double>(a.size());
}

// Random123's published vectors for philox4x32-10.
TEST(RandomTest, PhiloxGivesItsKnownAnswers) {
  const auto philox = [](philox4x32_ctr_t counter, philox4x32_key_t key) {
    const philox4x32_ctr_t out = philox4x32_R(10, counter, key);
    return std::vector<uint32_t>(out.v, out.v + 4);
  };
  EXPECT_EQ(philox({{0, 0, 0, 0}}, {{0, 0}}),
            (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}}),
            (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, WordsAreThePhiloxBlocksOfTheStream) {
  const Stream stream{Key{0x0123456789abcdef}, 7, 9};
  std::vector<uint32_t> words(10);
  fill_words(stream, 5, words.data(), 10);
  for (uint32_t block = 0; block < 2; ++block) {
    const philox4x32_ctr_t expected =
        philox4x32_R(10, {{block, 5, 7, 9}}, {{0x89abcdef, 0x01234567}});
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words[4 * block + i], expected.v[i]);
  }
}

// Box-Muller in double from the same words: the polynomials must agree to fp32 accuracy.
TEST(RandomTest, NormalsAreBoxMullerOfTheWords) {
  const Stream stream{make_key(3, Purpose::kEstimation), 1};
  std::vector<uint32_t> words(kSize);
  fill_words(stream, 2, words.data(), kSize);
  const auto z = normals(stream, 2);
  for (int64_t i = 0; i < kSize; i += 2) {
    const double u = ((words[i] >> 1) + 0.5) * 0x1p-31;
    const double radius = std::sqrt(-2 * std::log(u));
    const double angle = 2 * M_PI * words[i + 1] * 0x1p-32;
    // u is rounded to 24 bits on the way, which the radius feels most near u = 1.
    const double tolerance = 4e-7 + 1e-7 / std::max(radius, 1e-3);
    EXPECT_NEAR(z[i], radius * std::cos(angle), tolerance);
    EXPECT_NEAR(z[i + 1], radius * std::sin(angle), tolerance);
  }
}

// Pins the noise itself: a change here changes every certificate.
TEST(RandomTest, NormalsArePinned) {
  const auto z = normals({make_key(0, Purpose::kEstimation), 0}, 0, 4);
  const auto again = normals({make_key(0, Purpose::kEstimation), 0}, 0, kSize);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(z[i], again[i]);
  EXPECT_EQ(z,
            (std::vector<float>{-0x1.7278cep-2f, 0x1.9c5172p-1f, -0x1.9b7b32p-1f, 0x1.b50056p-2f}));
}

TEST(RandomTest, AShorterSampleIsAPrefixOfALongerOne) {
  const Stream stream{Key{42}, 3, 1};
  const auto whole = normals(stream, 11);
  for (const int64_t count : {1, 3, 4, 5, 255, 256, 257, 1000}) {
    const auto part = normals(stream, 11, count);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << count;
  }
}

TEST(RandomTest, ThreadsDrawTheSameNumbers) {
  const Stream stream{Key{5}};
  const auto expected = many_normals(stream, 64);
  std::vector<float> found(expected.size());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t s = t; s < 64; s += 4) {
        fill_normal(stream, s, found.data() + s * kSize, kSize);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
}

// N values: the mean of z^k is normal with the variance of z^k over N. Five standard deviations.
TEST(RandomTest, MomentsAreNormal) {
  const auto z = many_normals({make_key(1, Purpose::kEstimation)}, 2000);
  const auto n = static_cast<double>(z.size());
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (const double v : z) {
    m1 += v;
    m2 += v * v;
    m3 += v * v * v;
    m4 += v * v * v * v;
  }
  EXPECT_NEAR(m1 / n, 0, 5 * std::sqrt(1 / n));
  EXPECT_NEAR(m2 / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(m3 / n, 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(m4 / n, 3, 5 * std::sqrt(96 / n));
}

TEST(RandomTest, TailsHaveTheExpectedFrequency) {
  const auto z = many_normals({make_key(2, Purpose::kEstimation)}, 4000);
  const auto n = static_cast<double>(z.size());
  const boost::math::normal_distribution<> normal;
  for (const double beyond : {2.0, 3.0, 4.0, 4.5}) {
    for (const double side : {-1.0, 1.0}) {
      const double expected = n * cdf(complement(normal, beyond));
      const auto found = static_cast<double>(
          std::count_if(z.begin(), z.end(), [&](float v) { return side * v > beyond; }));
      EXPECT_NEAR(found, expected, 5 * std::sqrt(expected)) << side * beyond;
    }
  }
}

// Kolmogorov-Smirnov: sqrt(n) D exceeds 2.2 with probability 1.3e-4.
TEST(RandomTest, DistributionIsNormal) {
  auto z = many_normals({make_key(3, Purpose::kEstimation)}, 100);
  std::sort(z.begin(), z.end());
  const auto n = static_cast<double>(z.size());
  double distance = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const double phi = std::erfc(-z[i] / std::sqrt(2.0)) / 2;
    distance = std::max({distance, phi - i / n, (i + 1) / n - phi});
  }
  EXPECT_LT(std::sqrt(n) * distance, 2.2);
}

// Coordinates, samples, images, clients, purposes, rounds and seeds: changing any one of them gives
// numbers that are uncorrelated with the first. Five standard deviations of 1 / sqrt(N).
TEST(RandomTest, StreamsAreIndependent) {
  const Stream base{make_key(1, Purpose::kEstimation), 10, 20};
  constexpr uint32_t kSamples = 50;
  const auto z = many_normals(base, kSamples);
  const double limit = 5 / std::sqrt(static_cast<double>(z.size()));
  const Key key = base.key;
  for (const Stream& other : {Stream{key, 11, 20}, Stream{key, 10, 21}, Stream{key, 20, 10},
                              Stream{make_key(1, Purpose::kSelection), 10, 20},
                              Stream{make_key(1, Purpose::kEstimation, 1), 10, 20},
                              Stream{make_key(2, Purpose::kEstimation), 10, 20}}) {
    EXPECT_LT(std::abs(correlation(z, many_normals(other, kSamples))), limit);
  }
  for (const size_t shift : {size_t{1}, size_t{2}, size_t{4}, size_t{kSize}}) {
    auto shifted = z;
    std::rotate(shifted.begin(), shifted.begin() + shift, shifted.end());
    EXPECT_LT(std::abs(correlation(z, shifted)), limit) << shift;
  }
}

TEST(RandomTest, KeysOfPurposesAndSeedsDiffer) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t purpose = 1; purpose <= 6; ++purpose) {
      for (uint64_t round = 0; round < 20; ++round) {
        keys.insert(make_key(seed, static_cast<Purpose>(purpose), round).value);
      }
    }
  }
  EXPECT_EQ(keys.size(), 100U * 6 * 20);
}

TEST(RandomTest, UniformsFillTheUnitInterval) {
  std::vector<float> u(100'000);
  fill_uniform({make_key(0, Purpose::kWeights)}, 0, u.data(), static_cast<int64_t>(u.size()));
  EXPECT_GE(*std::min_element(u.begin(), u.end()), 0.0f);
  EXPECT_LT(*std::max_element(u.begin(), u.end()), 1.0f);
  double mean = 0;
  for (const float v : u) mean += v / static_cast<double>(u.size());
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1.0 / 12 / static_cast<double>(u.size())));
}

// Noise for votes differs from the normals of training only where a word begins with 16 zeros.
TEST(RandomTest, NoiseEqualsNormalsExceptInTheTails) {
  const Stream stream{make_key(1, Purpose::kEstimation), 3};
  int64_t changed = 0, blocks = 0;
  std::vector<float> noise(4099), plain(4099);
  std::vector<uint32_t> words(4100);
  for (uint32_t sample = 0; sample < 400; ++sample) {
    fill_noise(stream, sample, noise.data(), 4099);
    fill_normal(stream, sample, plain.data(), 4099);
    fill_words(stream, sample, words.data(), 4100);
    for (size_t i = 0; i + 1 < noise.size(); i += 2, ++blocks) {
      const bool tail = words[i] < 1 << 16;
      changed += tail;
      const double square = double{noise[i]} * noise[i] + double{noise[i + 1]} * noise[i + 1];
      EXPECT_EQ(tail, square > 32 * std::log(2.0) * (1 + 1e-6)) << square;
      if (!tail) {
        ASSERT_EQ(noise[i], plain[i]);
        ASSERT_EQ(noise[i + 1], plain[i + 1]);
      }
    }
  }
  const double expected = static_cast<double>(blocks) / 65'536;
  EXPECT_NEAR(static_cast<double>(changed), expected, 5 * std::sqrt(expected));
  EXPECT_GT(changed, 0);
}

// The square of the radius beyond the tail's beginning is exponential with mean 2, from 64 bits.
TEST(RandomTest, TailsFollowTheNormalLaw) {
  constexpr int kDraws = 100'000;
  std::vector<uint32_t> words(3 * kDraws);
  fill_words({make_key(2, Purpose::kProbe)}, 0, words.data(), std::ssize(words));
  std::vector<double> squares;
  for (int i = 0; i < kDraws; ++i) {
    float x = 0, y = 0;
    tail_pair(words[3 * i] >> 16, words[3 * i + 1], words[3 * i + 2], x, y);
    squares.push_back(double{x} * x + double{y} * y - 32 * std::log(2.0));
    // Against the logarithm of all 64 bits.
    const double u = (words[3 * i] >> 16) * 0x1p-32 + (words[3 * i + 1] + 0.5) * 0x1p-64;
    EXPECT_NEAR(squares.back() + 32 * std::log(2.0), -2 * std::log(u), 2e-4);
  }
  std::sort(squares.begin(), squares.end());
  double farthest = 0;  // Kolmogorov and Smirnov's distance
  for (int i = 0; i < kDraws; ++i) {
    farthest = std::max(farthest, std::fabs(-std::expm1(-squares[i] / 2) - (i + 0.5) / kDraws));
  }
  EXPECT_LT(farthest, 1.95 / std::sqrt(kDraws));  // exceeded by chance once in a thousand
  float x = 0, y = 0;
  tail_pair(0, 0, 0, x, y);
  EXPECT_NEAR(x, std::sqrt(130 * std::log(2.0)), 1e-4);  // the largest: 9.49
}

}  // namespace
}  // namespace fedsmooth
