// Votes on the GPU: those of the CPU, whatever lies beside them, and sound where the truth is
// known.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/device_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"
#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/smoothing/certify.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/networks.h"
#include "tests/refusal.h"
#include "tests/smoothing/uniform_noise.h"

namespace fedsmooth {
namespace {

using DeviceSamplerTest = GpuTest;

// Weights large enough that noise changes the answer.
Model model_called(const std::string& name) {
  const Network network = named_network(name);
  Weights weights = initial_weights(network, Key{1});
  for (Array& w : weights) w = each(w, [](float v) { return 1.5f * v; });
  return {network, weights, 0.5, {}};
}

VoteRequest request_for(uint64_t seed, int64_t n) {
  return {uniform({3, 32, 32}, seed), 0.5, n, {make_key(seed, Purpose::kEstimation), 7}};
}

// Of an image of bytes over 255, as exact noise needs it.
VoteRequest bytes_request_for(uint64_t seed, int64_t n) {
  VoteRequest request = request_for(seed, n);
  request.x = each(request.x, [](float v) { return std::round(255 * v) / 255; });
  return request;
}

class DeviceSamplerCaseTest : public DeviceSamplerTest,
                              public testing::WithParamInterface<std::string> {};

// The same classifier, fed with the CPU's noise and counted there.
TEST_P(DeviceSamplerCaseTest, CountsWhatItsClassifierSays) {
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat32}) {
    const BaseClassifier f = gpu_classifier(model_called(GetParam()), precision);
    SerialSampler serial(f, kFloatNoise);
    const auto sampler = f.sampler(kFloatNoise, {});
    for (const int64_t n : {1, 100, kGpuBatch + 17}) {
      EXPECT_EQ(sampler->count(request_for(1, n)), serial.count(request_for(1, n))) << n;
    }
  }
}

// In float32 both compute the same sums in another order: only near-ties may be decided otherwise.
TEST_P(DeviceSamplerCaseTest, CountsLikeTheCpu) {
  const Model model = model_called(GetParam());
  const VoteRequest request = request_for(2, 3000);
  const Votes found =
      gpu_classifier(model, Precision::kFloat32).sampler(kFloatNoise, {})->count(request);
  Array noisy({request.n, 3, 32, 32});
  add_noise(request.x, request.sigma, request.stream, 0, request.n, noisy);
  const Array logits = reference_logits(model.network, model.weights, noisy);
  const double near = 1e-5 * largest(logits);
  Votes expected(10, 0);
  int64_t near_ties = 0;
  for (int64_t i = 0; i < request.n; ++i) {
    std::vector<float> row = values_of(logits[i]);
    ++expected[std::max_element(row.begin(), row.end()) - row.begin()];
    std::sort(row.rbegin(), row.rend());
    near_ties += row[0] - row[1] < near;
  }
  EXPECT_LT(near_ties, 30);
  int64_t total = 0;
  for (int64_t c = 0; c < 10; ++c) {
    EXPECT_LE(std::abs(found[c] - expected[c]), near_ties) << c;
    total += found[c];
  }
  EXPECT_EQ(total, request.n);
}

TEST_P(DeviceSamplerCaseTest, WhatLiesBesideChangesNothing) {
  const BaseClassifier f = gpu_classifier(model_called(GetParam()));
  const auto sampler = f.sampler(kFloatNoise, {});
  const std::vector<VoteRequest> requests = {request_for(1, 100), request_for(2, 5000),
                                             request_for(3, 1), request_for(4, 9000)};
  const std::vector<Votes> together = sampler->count_all(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i], f.sampler(kFloatNoise, {})->count(requests[i])) << i;
  }
  EXPECT_EQ(sampler->count_all({}).size(), 0U);
}

TEST_P(DeviceSamplerCaseTest, IsAFunction) {
  const Model model = model_called(GetParam());
  const BaseClassifier f = gpu_classifier(model);
  const auto fingerprint = [](const BaseClassifier& of) {
    return check_is_function(of, {3, 32, 32}).fingerprint;
  };
  EXPECT_EQ(fingerprint(f), fingerprint(gpu_classifier(model)));
  EXPECT_EQ(fingerprint(f), fingerprint(row_gpu_classifier(model, Precision::kBfloat16, f.batch)));
  EXPECT_NE(fingerprint(f), fingerprint(gpu_classifier(model, Precision::kFloat32)));
}

// What counts the votes is checked and probed itself, with the inputs of the check kept on the GPU.
TEST_P(DeviceSamplerCaseTest, ItsSamplerIsCheckedAndProbed) {
  const BaseClassifier f = gpu_classifier(model_called(GetParam()));
  for (const NoiseLaw* law : {&kFloatNoise, &kExactNoise}) {
    const auto sampler = make_sampler(f, *law, 1);
    EXPECT_EQ(sampler->check({3, 32, 32}), check_is_function(f, {3, 32, 32}).fingerprint);
    const Votes before = sampler->count(bytes_request_for(1, 5000));
    for (int i = 0; i < 3; ++i) sampler->probe();
    EXPECT_EQ(sampler->count(bytes_request_for(1, 5000)), before);
  }
}

// Votes that are asked for in pieces, of images that may be on the GPU already.
TEST_P(DeviceSamplerCaseTest, PiecesAddUpToTheWhole) {
  const auto sampler = make_sampler(gpu_classifier(model_called(GetParam())), kFloatNoise, 1);
  const std::vector<VoteRequest> requests = {request_for(1, 300), request_for(2, 300),
                                             request_for(3, 300)};
  const std::vector<Votes> whole = sampler->count_all(requests);
  // In order, in another order, and without some.
  for (const std::vector<size_t>& order :
       {std::vector<size_t>{0, 1, 2}, {2, 0, 1}, {1, 2}, {2}, {0, 0}}) {
    std::vector<Votes> sum(order.size(), Votes(10, 0));
    for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 100}, {100, 200}}) {
      std::vector<VoteRequest> some;
      for (const size_t i : order) {
        some.push_back(requests[i]);
        some.back().first = first;
        some.back().n = n;
      }
      const std::vector<Votes> found = sampler->count_all(some);
      for (size_t i = 0; i < order.size(); ++i) {
        for (int64_t c = 0; c < 10; ++c) sum[i][c] += found[i][c];
      }
    }
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(sum[i], whole[order[i]]) << order[i];
  }
}

// An image whose pixels were changed is another one, also in the same memory.
TEST_P(DeviceSamplerCaseTest, AChangedImageIsUploadedAnew) {
  const BaseClassifier f = gpu_classifier(model_called(GetParam()));
  const auto sampler = make_sampler(f, kFloatNoise, 1);
  VoteRequest request = request_for(1, 3000);
  const Votes before = sampler->count(request);
  const Array other = uniform({3, 32, 32}, 9);
  std::copy_n(other.floats(), other.count(), request.x.floats());
  const Votes after = sampler->count(request);
  EXPECT_NE(after, before);
  EXPECT_EQ(after, make_sampler(f, kFloatNoise, 1)->count(request));
}

// The CPU's exact noise, counted by the GPU's own classifier.
TEST_P(DeviceSamplerCaseTest, ExactNoiseIsThatOfTheCpu) {
  const BaseClassifier f = gpu_classifier(model_called(GetParam()));
  SerialSampler serial(f, kExactNoise);
  const auto sampler = make_sampler(f, kExactNoise, 1);
  EXPECT_EQ(&sampler->law(), &kExactNoise);
  VoteRequest request = bytes_request_for(1, kGpuBatch + 17);
  for (const double sigma : {0.5, 0.25, 0.5}) {  // each has cells of its own
    request.sigma = sigma;
    EXPECT_EQ(sampler->count(request), serial.count(request)) << sigma;
  }
  EXPECT_THROW(sampler->count(request_for(1, 10)), Error);  // not made of bytes
}

// Given radii are latched as one image at a time and the CPU's noise would.
TEST_P(DeviceSamplerCaseTest, RadiiAreLatchedAsByTheSerialSampler) {
  const BaseClassifier f = gpu_classifier(model_called(GetParam()));
  const auto sampler = f.sampler(kFloatNoise, {});
  SerialSampler serial(f, kFloatNoise);
  CertifyOptions o;
  o.n0 = 50;
  o.n = 3000;
  o.radii = {0.1, 0.2, 0.5};
  std::vector<LabelledImage> images;
  for (uint32_t i = 0; i < 20; ++i) images.push_back({uniform({3, 32, 32}, i), i});
  const auto together = certify_all(*sampler, images, 0.5, o, 1);
  std::set<int64_t> numbers;
  for (uint32_t i = 0; i < 20; i += 5) {
    const Certificate alone = certify(serial, images[i].x, 0.5, o, 1, i);
    EXPECT_EQ(together[i].radius, alone.radius);
    EXPECT_EQ(together[i].counts.n, alone.counts.n);
    EXPECT_EQ(together[i].counts.top, alone.counts.top);
    EXPECT_EQ(together[i].latches.size(), alone.latches.size());
  }
  for (const Certificate& c : together) numbers.insert(c.counts.n);
  EXPECT_GE(numbers.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Networks, DeviceSamplerCaseTest, testing::Values("small", "alexnet"),
                         [](const auto& info) { return info.param; });

TEST_F(DeviceSamplerTest, BrokenLogitsVoteForNobody) {
  Model model = model_called("small");
  model.weights.back() = Array::full(model.weights.back().sizes(), INFINITY);
  const Votes votes = gpu_classifier(model).sampler(kFloatNoise, {})->count(request_for(1, 500));
  EXPECT_EQ(votes, Votes(10, 0));
}

TEST_F(DeviceSamplerTest, RefusesALawThatItDoesNotDraw) {
  const Model model = model_called("small");
  const BaseClassifier f = gpu_classifier(model);
  const std::string end =
      ": a GPU draws float-2 and exact noise only; " + f.description + " cannot count its votes";
  EXPECT_EQ(refusal([&] { make_sampler(f, kUniformNoise, 1); }), "noise=uniform" + end);
  EXPECT_EQ(refusal([&] { make_sampler(f, kCutFloatNoise, 1); }), "noise=float" + end);
  EXPECT_NE(refusal([&] {
              choose_classifier("cuda", model, kUniformNoise);
            }).find(gpu_law_refusal(kUniformNoise)),
            std::string::npos);
  EXPECT_TRUE(choose_classifier("auto", model, kUniformNoise).description.starts_with("cpu"));
}

// Needs no GPU.
TEST(GpuLawTest, IsRefusedByNameUnlessItIsDrawn) {
  EXPECT_EQ(gpu_law_refusal(kFloatNoise), "");
  EXPECT_EQ(gpu_law_refusal(kExactNoise), "");
  EXPECT_EQ(gpu_law_refusal(kUniformNoise),
            "noise=uniform: a GPU draws float-2 and exact noise only");
}

TEST_F(DeviceSamplerTest, StopsWhenAsked) {
  const auto sampler =
      gpu_classifier(model_called("small")).sampler(kFloatNoise, [] { return true; });
  EXPECT_THROW(sampler->count(request_for(1, 100)), Interrupted);
}

// f(x) = [x . w > 0] for a unit vector w: the distance to the half-space's border is known.
class HalfSpaceTest : public DeviceSamplerTest {
 protected:
  HalfSpaceTest() {
    using Kind = Layer::Kind;
    Layer normalize{Kind::kNormalize};
    normalize.mean = {0.5};
    normalize.sd = {1.0};
    const Network network{"half-space", {1, 4, 4}, {normalize, {Kind::kLinear, "w", 2}}};
    Array weight = Array::full({2, 16}, 0.25f);
    std::fill_n(weight.floats(), 16, -0.25f);
    model_.weights = {weight, Array({2})};
    model_.network = network;
  }

  // An image at distance d: x . w = d for the normalised pixels.
  static Array image_at(double d) {
    return Array::full({1, 4, 4}, static_cast<float>(0.5 + d / 4));
  }

  Model model_;
};

TEST_F(HalfSpaceTest, VotesFollowTheNormalDistribution) {
  const auto sampler = gpu_classifier(model_, Precision::kFloat32).sampler(kFloatNoise, {});
  const int64_t n = 200'000;
  for (const double d : {-0.3, 0.0, 0.1, 0.5, 1.0}) {
    const double p = 0.5 * std::erfc(-d / 0.5 / std::sqrt(2.0));
    const Votes votes = sampler->count({image_at(d), 0.5, n, {make_key(1, Purpose::kEstimation)}});
    const double error = std::sqrt(p * (1 - p) / static_cast<double>(n));
    EXPECT_NEAR(static_cast<double>(votes[1]) / static_cast<double>(n), p, 4.5 * error) << d;
  }
}

// A radius beyond the true distance is an error, which may happen with probability alpha.
TEST_F(HalfSpaceTest, RadiiCover) {
  const auto sampler = gpu_classifier(model_, Precision::kFloat32).sampler(kFloatNoise, {});
  CertifyOptions options;
  options.n0 = 20;
  options.n = 500;
  options.alpha = 0.1;
  const double d = 0.4;
  std::vector<LabelledImage> images;
  for (uint32_t i = 0; i < 2000; ++i) images.push_back({image_at(d), i});
  int64_t wrong = 0, certified = 0;
  double largest = 0;
  for (const Certificate& c : certify_all(*sampler, images, 0.5, options, 3)) {
    wrong += c.predict != kAbstain && (c.predict != 1 || c.radius > d);
    certified += c.predict == 1 && c.radius > 0;
    largest = std::max(largest, c.radius);
  }
  // 4 standard errors above alpha.
  EXPECT_LT(static_cast<double>(wrong) / 2000, 0.1 + 4 * std::sqrt(0.1 * 0.9 / 2000));
  EXPECT_GT(wrong, 0);  // the test could fail
  EXPECT_GT(certified, 1900);
  EXPECT_GT(largest, 0.3);
}

// A class may get more votes than 32 bits count.
TEST_F(DeviceSamplerTest, CountsBeyond32Bits) {
  const int rows = 1000;
  const DeviceArray<NoisyCopies> copies(std::vector<NoisyCopies>(1));
  const DeviceArray<float> logits(std::vector<float>(2 * rows, 1.0f));
  const VoteCounter before = (VoteCounter{1} << 32) - 10;
  const DeviceArray<VoteCounter> counts(std::vector<VoteCounter>{before, 7});
  NoisyRows r;
  r.copies = copies.data();
  r.requests = 1;
  r.total = r.rows = rows;
  check_cuda(count_votes({r, logits.data(), 2, 2, counts.data()}, nullptr), "count_votes");
  EXPECT_EQ(counts.download(nullptr), (std::vector<VoteCounter>{before + rows, 7}));
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(DeviceSamplerCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(DeviceSamplerTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(GpuLawTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(HalfSpaceTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
