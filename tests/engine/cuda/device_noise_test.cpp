// The noise that the GPU draws: the CPU's, and normal.
#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

using DeviceNoiseTest = GpuTest;

constexpr int kRows = 2048, kSize = 3072;

// kRows noisy copies of an image of kSize equal pixels.
std::vector<float> draw(Stream stream, float sigma, float pixel, uint32_t first = 0) {
  const DeviceArray<NoisyCopies> copies(
      std::vector<NoisyCopies>{{stream.key.value, stream.item, stream.client, sigma, first}});
  const DeviceArray<float> x(std::vector<float>(kSize, pixel)), out(int64_t{kRows} * kSize);
  NoisyRows r;
  r.copies = copies.data();
  r.requests = 1;
  r.x = x.data();
  r.total = r.rows = kRows;
  r.image_size = kSize;
  r.area = kSize / 3;
  check_cuda(make_noisy_images(r, out.data(), nullptr), "make_noisy_images");
  return out.download(nullptr);
}

// Bit for bit, tails included; with samples from any number on.
TEST_F(DeviceNoiseTest, IsThatOfTheCpu) {
  const Stream stream{make_key(1, Purpose::kEstimation), 5};
  const uint32_t first = 0xfffffe00 - 1536;  // up to the last of 2^32 samples, and those before
  const std::vector<float> found = draw(stream, 0.5f, 0.25f, first);
  Array expected({kRows, 3, 32, 32});
  add_noise(Array::full({3, 32, 32}, 0.25f), 0.5, stream, first, kRows, expected);
  int64_t different = 0, tails = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    different += found[i] != expected.floats()[i];
    tails += std::abs(found[i] - 0.25f) > 0.5f * 4.71f;  // certainly from a tail
  }
  EXPECT_EQ(different, 0);
  EXPECT_GT(tails, 0);
}

// The device's noise itself: moments, tails, neighbours, streams.
TEST_F(DeviceNoiseTest, IsNormal) {
  constexpr int rows = kRows, size = kSize;
  const std::vector<float> a = draw({make_key(1, Purpose::kEstimation), 5}, 1.0f, 0.0f);
  const std::vector<float> b = draw({make_key(1, Purpose::kSelection), 5}, 1.0f, 0.0f);
  const double n = static_cast<double>(rows) * size;
  const auto mean = [&](const std::function<double(double)>& f) {
    double sum = 0;
    for (const float value : a) sum += f(value);
    return sum / n;
  };
  // 5 standard errors each.
  EXPECT_NEAR(mean([](double z) { return z; }), 0, 5 / std::sqrt(n));
  EXPECT_NEAR(mean([](double z) { return z * z; }), 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(mean([](double z) { return z * z * z; }), 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(mean([](double z) { return z * z * z * z; }), 3, 5 * std::sqrt(96 / n));
  for (const double t : {1.0, 2.0, 3.0, 4.0}) {
    const double p = std::erfc(t / std::sqrt(2.0));
    EXPECT_NEAR(mean([t](double z) { return std::abs(z) > t; }), p, 5 * std::sqrt(p / n)) << t;
  }
  // The mean of products of values `down` rows and `right` columns apart.
  const auto together = [&](const std::vector<float>& other, int down, int right) {
    double sum = 0;
    for (int r = 0; r < rows - down; ++r) {
      for (int c = 0; c < size - right; ++c) {
        sum += static_cast<double>(a[r * size + c]) * other[(r + down) * size + c + right];
      }
    }
    return sum / (static_cast<double>(rows - down) * (size - right));
  };
  for (const int lag : {1, 2, 3, 4, 1024}) {
    EXPECT_NEAR(together(a, 0, lag), 0, 5 / std::sqrt(n * static_cast<double>(size - lag) / size))
        << lag;
  }
  EXPECT_NEAR(together(a, 1, 0), 0, 5.1 / std::sqrt(n));
  EXPECT_NEAR(together(b, 0, 0), 0, 5 / std::sqrt(n));
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(DeviceNoiseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
