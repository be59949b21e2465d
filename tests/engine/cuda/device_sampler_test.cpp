// Votes on the GPU: those of the CPU, whatever lies beside them, and sound where the truth is
// known.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/device_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/cuda/kernels/batched_votes.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/smoothing/certify.h"
#include "fedsmooth/smoothing/exact_noise.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/networks.h"

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

class DeviceSamplerCaseTest : public DeviceSamplerTest,
                              public testing::WithParamInterface<std::string> {};

// The same classifier, fed with the CPU's noise and counted there.
TEST_P(DeviceSamplerCaseTest, CountsWhatItsClassifierSays) {
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat32}) {
    const BaseClassifier f = gpu_classifier(model_called(GetParam()), precision);
    SerialSampler serial(f);
    const auto sampler = f.sampler({});
    for (const int64_t n : {1, 100, kGpuBatch + 17}) {
      EXPECT_EQ(sampler->count(request_for(1, n)), serial.count(request_for(1, n))) << n;
    }
  }
}

// In float32 both compute the same sums in another order: only near-ties may be decided otherwise.
TEST_P(DeviceSamplerCaseTest, CountsLikeTheCpu) {
  const Model model = model_called(GetParam());
  const VoteRequest request = request_for(2, 3000);
  const Votes found = gpu_classifier(model, Precision::kFloat32).sampler({})->count(request);
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
  const auto sampler = f.sampler({});
  const std::vector<VoteRequest> requests = {request_for(1, 100), request_for(2, 5000),
                                             request_for(3, 1), request_for(4, 9000)};
  const std::vector<Votes> together = sampler->count_all(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i], f.sampler({})->count(requests[i])) << i;
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
  const Model model = model_called(GetParam());
  for (const BaseClassifier& f : {gpu_classifier(model), banked_gpu_classifier(model)}) {
    const auto sampler = f.sampler({});
    EXPECT_EQ(sampler->check({3, 32, 32}), check_is_function(f, {3, 32, 32}).fingerprint);
    const Votes before = sampler->count(request_for(1, 5000));
    for (int i = 0; i < 3; ++i) sampler->probe();
    EXPECT_EQ(sampler->count(request_for(1, 5000)), before);
  }
  EXPECT_THROW(with_exact_noise(banked_gpu_classifier(model), 0.5), Error);
}

// Votes that are asked for in pieces, of images that the sampler holds.
TEST_P(DeviceSamplerCaseTest, PiecesAddUpToTheWhole) {
  const Model model = model_called(GetParam());
  for (const bool bank : {false, true}) {
    const BaseClassifier f = bank ? banked_gpu_classifier(model) : gpu_classifier(model);
    const auto sampler = f.sampler({});
    std::vector<VoteRequest> requests = {request_for(1, 300), request_for(2, 300)};
    if (bank) requests[1].stream = requests[0].stream;
    const std::vector<Votes> whole = sampler->count_all(requests);
    sampler->hold({requests[0].x, requests[1].x});
    std::vector<Votes> sum(2, Votes(10, 0));
    for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 100}, {100, 200}}) {
      std::vector<VoteRequest> some = {requests[1], requests[0]};
      for (int i = 0; i < 2; ++i) {
        some[i].first = first;
        some[i].n = n;
        some[i].held = 1 - i;
      }
      const std::vector<Votes> found = sampler->count_all(some);
      for (int i = 0; i < 2; ++i) {
        for (int64_t c = 0; c < 10; ++c) sum[1 - i][c] += found[i][c];
      }
    }
    EXPECT_EQ(sum, whole);
    VoteRequest other = requests[0];
    other.x = other.x.clone();
    other.held = 0;  // it is not
    EXPECT_THROW(sampler->count(other), Bug);
    EXPECT_EQ(sampler->count_all(requests), whole);
  }
}

// The CPU's exact noise, counted by the GPU's own classifier.
TEST_P(DeviceSamplerCaseTest, ExactNoiseIsThatOfTheCpu) {
  const BaseClassifier f = with_exact_noise(gpu_classifier(model_called(GetParam())), 0.5);
  SerialSampler serial(f);
  const auto sampler = make_sampler(f, 1);
  EXPECT_EQ(sampler->noise_kind(), NoiseKind::kExact);
  VoteRequest request = request_for(1, kGpuBatch + 17);
  request.x = each(request.x, [](float v) { return std::round(255 * v) / 255; });
  EXPECT_EQ(sampler->count(request), serial.count(request));
  EXPECT_THROW(sampler->count(request_for(1, 10)), Error);  // not made of bytes
}

// Given radii are latched as one image at a time and the CPU's noise would.
TEST_P(DeviceSamplerCaseTest, RadiiAreLatchedAsByTheSerialSampler) {
  const BaseClassifier f = gpu_classifier(model_called(GetParam()));
  const auto sampler = f.sampler({});
  SerialSampler serial(f);
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

// From the bank, and without: the same sums but for float32 rounding and the first layer's
// bfloat16.
TEST_P(DeviceSamplerCaseTest, ABankGivesTheVotesOfItsDraws) {
  const Model model = model_called(GetParam());
  const BaseClassifier f = banked_gpu_classifier(model);
  check_is_function(f, {3, 32, 32});
  const auto sampler = f.sampler({});
  std::vector<VoteRequest> requests;
  for (uint64_t i = 0; i < 70; ++i) {
    requests.push_back({uniform({3, 32, 32}, i), 0.5, 400, {make_key(5, Purpose::kEstimation), 0}});
  }
  const std::vector<Votes> found = sampler->count_all(requests);
  SerialSampler serial(f);  // noise by the CPU, the first layer of the sum
  for (const size_t i : {size_t{0}, size_t{37}, size_t{69}}) {
    const Votes expected = serial.count(requests[i]);
    int64_t moved = 0;
    for (int64_t c = 0; c < 10; ++c) moved += std::abs(found[i][c] - expected[c]);
    EXPECT_LE(moved, 4) << i;  // near-ties of float32 sums, before they are rounded to bfloat16
    EXPECT_EQ(sampler->count(requests[i]), found[i]) << i;
  }
  // Another bank, larger than a block, then the first again.
  VoteRequest other = requests[0];
  other.stream.key = make_key(6, Purpose::kEstimation);
  other.n = kGpuBatch + 5;
  const Votes larger = sampler->count(other);
  EXPECT_EQ(std::accumulate(larger.begin(), larger.end(), int64_t{0}), other.n);
  EXPECT_EQ(sampler->count(requests[3]), found[3]);
}

INSTANTIATE_TEST_SUITE_P(Networks, DeviceSamplerCaseTest, testing::Values("small", "alexnet"),
                         [](const auto& info) { return info.param; });

TEST_F(DeviceSamplerTest, BrokenLogitsVoteForNobody) {
  Model model = model_called("small");
  model.weights.back() = Array::full(model.weights.back().sizes(), INFINITY);
  const Votes votes = gpu_classifier(model).sampler({})->count(request_for(1, 500));
  EXPECT_EQ(votes, Votes(10, 0));
}

TEST_F(DeviceSamplerTest, StopsWhenAsked) {
  const auto sampler = gpu_classifier(model_called("small")).sampler([] { return true; });
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
  const auto sampler = gpu_classifier(model_, Precision::kFloat32).sampler({});
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
  const auto sampler = gpu_classifier(model_, Precision::kFloat32).sampler({});
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
TEST(HalfSpaceTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
