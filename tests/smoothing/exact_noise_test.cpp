#include "fedsmooth/smoothing/exact_noise.h"

#include <gtest/gtest.h>

#include <boost/math/constants/constants.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <map>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/smoothing/certify.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

using Real = boost::multiprecision::cpp_bin_float_100;

// Phi by its power series, good to far more than 64 bits for |z| < 7.
Real phi(const Real& z) {
  Real term = z, sum = z;
  for (int n = 1; abs(term) > Real(1e-60); ++n) {
    term *= -z * z / (2 * n);
    sum += term / (2 * n + 1);
  }
  return Real(0.5) + sum / sqrt(2 * boost::math::constants::pi<Real>());
}

Real edge_above(int k, double sigma) { return phi(Real(2 * k + 1) / (510 * Real(sigma))); }

Array image_of(const std::vector<float>& bytes) {
  const Array whole = Array::of({1, 1, std::ssize(bytes)}, bytes);
  return each(whole, [](float byte) { return byte / 255; });
}

const Stream kStream = {make_key(1, Purpose::kEstimation), 2};

// The integers k of `count` copies of the image.
std::vector<int> draw(const ExactNoise& noise, const Array& x, int64_t count) {
  Array noisy({count, x.size(0), x.size(1), x.size(2)});
  noise.add(x, kStream, 0, count, noisy);
  const auto whole = [](float value) { return static_cast<int>(std::lround(255.0 * value)); };
  std::vector<int> found;
  int64_t broken = 0;
  for (int64_t i = 0; i < noisy.count(); ++i) {
    const float value = noisy.floats()[i];
    broken += static_cast<float>(whole(value)) / 255 != value;
    found.push_back(whole(value) - whole(x.floats()[i % x.count()]));
  }
  EXPECT_EQ(broken, 0) << "not a whole number of 255ths";
  return found;
}

TEST(ExactNoiseTest, CellsMeetWhereTheGaussianSaysSo) {
  for (const double sigma : {0.004, 0.12, 0.25, 1.0, 16.0}) {
    const ExactNoise noise(sigma);
    const int widest = static_cast<int>(5 * 255 * sigma);
    for (int k = -widest; k <= widest; k += std::max(1, widest / 50)) {
      const auto edge = static_cast<uint64_t>(ldexp(edge_above(k, sigma), 64));
      const uint64_t beyond = 2 * ExactNoise::kMargin;
      EXPECT_EQ(noise.cell(edge - beyond), k) << sigma;
      EXPECT_EQ(noise.cell(edge + beyond), k + 1) << sigma;
      // With room for an error of half the margin in the table.
      for (const int off : {-8, 0, 8}) {
        EXPECT_EQ(noise.cell(edge + off), ExactNoise::kUndecided) << sigma << " " << k;
      }
    }
  }
}

TEST(ExactNoiseTest, EndsTakeWhatLiesBeyond) {
  const ExactNoise noise(0.25);
  EXPECT_EQ(noise.reach(), 2);
  EXPECT_EQ(noise.cell(uint64_t{1} << 63), 0);
  EXPECT_EQ(noise.cell(0), ExactNoise::kUndecided);
  EXPECT_EQ(noise.cell(UINT64_MAX), ExactNoise::kUndecided);
  EXPECT_LT(noise.cell(1000), -255 * 2);  // 8.1 standard deviations below
}

// Expected counts by the series above; the statistic of d cells has mean d and variance 2 d.
TEST(ExactNoiseTest, DrawsFollowTheirLaw) {
  for (const double sigma : {0.01, 0.25}) {
    const Array x = image_of(std::vector<float>(1000, 100));
    const std::vector<int> cells = draw(ExactNoise(sigma), x, 1000);
    std::map<int, int64_t> counts;
    for (const int cell : cells) ++counts[cell];
    double statistic = 0;
    int freedom = 0;
    const int widest = static_cast<int>(5 * 255 * sigma);
    for (int k = -widest; k <= widest; ++k) {
      const auto expected =
          static_cast<double>((edge_above(k, sigma) - edge_above(k - 1, sigma)) * cells.size());
      if (expected < 20) continue;
      statistic += std::pow(static_cast<double>(counts[k]) - expected, 2) / expected;
      ++freedom;
    }
    EXPECT_GT(freedom, 10);
    EXPECT_NEAR(statistic, freedom, 5 * std::sqrt(2.0 * freedom)) << sigma;
  }
}

TEST(ExactNoiseTest, IsTheSameForEveryImage) {
  const ExactNoise noise(0.25);
  const std::vector<int> black = draw(noise, image_of({0, 0, 0, 0, 0}), 500);
  EXPECT_EQ(black, draw(noise, image_of({1, 7, 128, 254, 255}), 500));
}

TEST(ExactNoiseTest, ClipsWhatIsFarOff) {
  const ExactNoise noise(0.1);
  Array noisy({20'000, 1, 1, 2});
  noise.add(image_of({0, 255}), kStream, 0, 20'000, noisy);
  const std::vector<float> values = values_of(noisy);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 2);
}

TEST(ExactNoiseTest, RefusesWhatIsNotMadeOfBytes) {
  Array noisy({1, 1, 1, 1});
  EXPECT_THROW(ExactNoise(0.25).add(Array::full({1, 1, 1}, 0.3f), kStream, 0, 1, noisy), Error);
  EXPECT_THROW(ExactNoise(17), Error);
  EXPECT_THROW(ExactNoise(NAN), Error);
}

// Answers 1 where the first pixel is at least (byte + 1/2) / 255. Rounded to 255ths that is still a
// half-space.
Classifier above(int byte) {
  const float edge = static_cast<float>(byte) + 0.5f;
  return by_score([edge](Pixels pixels) { return pixels[0] * 255 - edge; });
}

TEST(ExactNoiseTest, OverstatesTheRadiusNoMoreOftenThanAlpha) {
  constexpr double kSigma = 0.25;
  SerialSampler sampler(fixed_batch(above(99), 2), kExactNoise);
  const Array x = image_of({125});
  const double distance = 25.5 / 255;
  int overstated = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Certificate c = certify(sampler, x, kSigma, {.n0 = 20, .n = 200, .alpha = 0.1}, seed, 0);
    overstated += c.predict == 0 || c.radius > distance;
  }
  EXPECT_LE(overstated, 100 + 4 * 9.5);
  EXPECT_GE(overstated, 20);
}

// Answers 1 where all pixels are multiples of 2^-24. In floating point 1 + noise always is one, and
// 0 + noise only every other time: rounding alone shows it a white image from a black one.
Classifier sees_rounding() {
  return image_by_image(2, [](Pixels pixels, float* logits) {
    const bool whole = std::all_of(pixels.begin(), pixels.end(), [](float pixel) {
      return 0x1p24 * pixel == std::round(0x1p24 * pixel);
    });
    logits[whole] = 1;
  });
}

TEST(ExactNoiseTest, IsNotFooledByRoundingAsFloatsAre) {
  constexpr double kSigma = 0.5;
  const Array white = image_of({255, 255}), black = image_of({0, 0});
  const double distance = std::sqrt(2.0);
  const auto answers = [&](Sampler& sampler) {
    return std::pair(certify(sampler, white, kSigma, {.n = 20'000}, 1, 0),
                     predict(sampler, black, kSigma, 20'000, 0.001, 1, 1).predict);
  };
  SerialSampler floats(fixed_batch(sees_rounding(), 2), kFloatNoise);
  const auto [false_certificate, elsewhere] = answers(floats);
  EXPECT_EQ(false_certificate.predict, 1);
  EXPECT_GT(false_certificate.radius, distance);
  EXPECT_EQ(elsewhere, 0);

  SerialSampler exact(fixed_batch(sees_rounding(), 2), kExactNoise);
  const auto [certificate, there] = answers(exact);
  EXPECT_EQ(certificate.predict, 1);
  EXPECT_EQ(there, 0);
  EXPECT_LT(certificate.radius, distance);
}

TEST(ExactNoiseTest, ThreadsCountTheSameVotes) {
  const BaseClassifier f = fixed_batch(above(99), 2, 16);
  const VoteRequest request = {image_of({110}), 0.25, 1001, kStream};
  const Votes serial = SerialSampler(f, kExactNoise).count(request);
  EXPECT_EQ(ThreadedSampler(f, kExactNoise, 3).count(request), serial);
  // Noise that several cores draw, too.
  const VoteRequest large = {Array::full({3, 64, 64}, 100.0f / 255), 0.25, 40, kStream};
  EXPECT_EQ(SerialSampler(f, kExactNoise, 3).count(large),
            SerialSampler(f, kExactNoise).count(large));
}

// 128 bits of Phi((2 k + 1) / 127.5), computed elsewhere with 80 digits.
TEST(ExactNoiseTest, FurtherBitsDecideWhatTheFirstLeaveOpen) {
  struct Edge {
    int32_t k;
    uint64_t bits, further;
  };
  const ExactNoise noise(0.25);
  for (const auto& [k, bits, further] : {Edge{0, 0x80cd0eaf0ff60838, 0xc98b449e1c830f1c},
                                         Edge{1, 0x82671f22c1e2255c, 0x8f18f951b04ebd56},
                                         Edge{63, 0xd7240f56bf9d20be, 0xc333641d97e51148},
                                         Edge{-64, 0x28dbf0a94062df41, 0x3ccc9be2681aeeb7},
                                         Edge{200, 0xffc9984b8e8d287c, 0x23f3e518f400f200},
                                         Edge{400, 0xffffffff48a9ec22, 0x44f1b4adb05e62d9}}) {
    EXPECT_EQ(noise.cell(bits), ExactNoise::kUndecided) << k;
    EXPECT_EQ(noise.cell(bits, further - 20), k);
    EXPECT_EQ(noise.cell(bits, further + 20), k + 1);
    EXPECT_EQ(noise.cell(bits, further), ExactNoise::kUndecided) << k;
    // Bits that the first 64 leave open on either side.
    EXPECT_EQ(noise.cell(bits - 9, further), k);
    EXPECT_EQ(noise.cell(bits + 9, further), k + 1);
  }
  EXPECT_NE(noise.cell(0, 1 << 20), ExactNoise::kUndecided);  // beyond all edges that are not 0
  EXPECT_NE(noise.cell(UINT64_MAX, 1 << 20), ExactNoise::kUndecided);
}

NoiseSource leaves_one_open(double sigma) {
  return [sigma](const Array& x, Stream stream, int64_t first, int64_t count, Array& noisy) {
    add_noise(x, sigma, stream, first, count, noisy);
    if (first <= 32 && 32 < first + count) noisy.floats()[32 - first] = NAN;
  };
}

TEST(ExactNoiseTest, AnUndecidedCopyVotesForNobody) {
  NoiseLaw law = kExactNoise;
  law.draws_at = leaves_one_open;
  const BaseClassifier f = fixed_batch(above(99), 2, 16);
  const VoteRequest request = {image_of({110}), 0.25, 100, kStream};
  const Votes serial = SerialSampler(f, law).count(request);
  EXPECT_EQ(serial[0] + serial[1], 99);
  EXPECT_EQ(ThreadedSampler(f, law, 2).count(request), serial);
}

// A sampler may be asked for votes at several noise levels; each has cells of its own.
TEST(ExactNoiseTest, EverySigmaHasItsOwnCells) {
  const BaseClassifier f = fixed_batch(above(99), 2, 16);
  ThreadedSampler sampler(f, kExactNoise, 2);
  std::vector<VoteRequest> requests;
  for (const double sigma : {0.25, 1.0, 0.25}) {
    requests.push_back({image_of({110}), sigma, 1000, kStream});
  }
  const std::vector<Votes> together = sampler.count_all(requests);
  EXPECT_EQ(together[0], together[2]);
  EXPECT_NE(together[0], together[1]);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(SerialSampler(f, kExactNoise).count(requests[i]), together[i]) << i;
  }
}

}  // namespace
}  // namespace fedsmooth
