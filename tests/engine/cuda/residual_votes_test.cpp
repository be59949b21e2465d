// Votes of residual networks on the GPU: their logits against sums in double, their bits whatever
// lies beside them, and sound where the truth is known.
#include <gtest/gtest.h>

#ifdef FEDSMOOTH_CUDA

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/cuda/residual_sampler.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "fedsmooth/model/fold.h"
#include "fedsmooth/smoothing/certify.h"
#include "fedsmooth/smoothing/exact_noise.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/engine/cuda/residual_networks.h"

namespace fedsmooth {
namespace {

constexpr int kRows = 13;  // not a multiple of what a thread block takes

class ResidualVotesTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing =
        missing_for_votes(fold_batch_norm(residual_model("resnet8", false)).network);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

BaseClassifier classifier(const Model& model, int batch = kResidualBatch) {
  return residual_gpu_classifier(fold_batch_norm(model), batch);
}

Array logits_of(const BaseClassifier& f, const Array& images) { return f.make()(images); }

std::vector<double> as_doubles(const Array& a) { return {a.floats(), a.floats() + a.count()}; }

VoteRequest request_for(uint64_t seed, int64_t n) {
  return {uniform({3, 32, 32}, seed), 0.5, n, {make_key(seed, Purpose::kEstimation), 7}};
}

// The model with a bias that makes classes equally likely around the request's image: noise
// decides.
Model balanced(Model model, const VoteRequest& r) {
  constexpr int64_t kCopies = 8;
  Array noisy({kCopies, 3, 32, 32});
  add_noise(r.x, r.sigma, r.stream, 0, kCopies, noisy);
  const std::vector<double> logits = exact_logits(model, noisy);
  Array bias = model.weights.back().clone();
  for (size_t i = 0; i < logits.size(); ++i) {
    bias.floats()[i % 10] -= static_cast<float>(logits[i] / kCopies);
  }
  model.weights.back() = bias;
  return model;
}

// A value rounded to bfloat16 is off by at most u = 2^-8 of it, by 0.42 u on average (in the root
// of the mean of squares, for mantissas that are uniform in their logarithm). A convolution of
// rounded weights and a rounded map has sqrt(2) of that, layers are independent of each other, and
// an error passes through those after it like the signal does. Twice that, for the worst row.
double tolerance(int layers) { return 2 * 0.42 * std::sqrt(2.0 * layers) / 256; }

struct LogitsCase {
  std::string name;
  bool statistics;
  int layers;
};

class ResidualLogitsTest : public ResidualVotesTest,
                           public testing::WithParamInterface<LogitsCase> {};

TEST_P(ResidualLogitsTest, AreThoseOfTheReference) {
  const auto& [name, statistics, layers] = GetParam();
  const Model model = residual_model(name, statistics);
  const Array images = uniform({kRows, 3, 32, 32}, 2);
  const std::vector<double> expected = exact_logits(model, images);
  const std::vector<double> found = as_doubles(logits_of(classifier(model, kRows), images));
  const double error = worst_row(found, expected);
  RecordProperty("error", std::to_string(error));
  EXPECT_LT(error, tolerance(layers));
}

std::string name_of(const testing::TestParamInfo<LogitsCase>& info) {
  std::string name = info.param.name + (info.param.statistics ? "Normed" : "");
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    ResNets, ResidualLogitsTest,
    testing::Values(LogitsCase{"resnet8", false, 7}, LogitsCase{"resnet8-a", false, 7},
                    LogitsCase{"resnet8", true, 7}, LogitsCase{"resnet8-a", true, 7},
                    LogitsCase{"resnet20", false, 19}, LogitsCase{"resnet20-a", false, 19},
                    LogitsCase{"resnet20", true, 19}, LogitsCase{"resnet20-a", true, 19},
                    LogitsCase{"resnet110", true, 109}),
    name_of);

class ResidualRoundingTest : public ResidualLogitsTest {};

// Few sums fall on the other side of a boundary between two values of bfloat16, and there are few
// layers for that to grow in.
TEST_P(ResidualRoundingTest, IsWhereThePlanSays) {
  const auto& [name, statistics, layers] = GetParam();
  const Model model = residual_model(name, statistics);
  const Array images = uniform({kRows, 3, 32, 32}, 3);
  const ResidualPlan plan = plan_residual(fold_batch_norm(model));
  const std::vector<double> expected = PlainPlan(plan, Rounding::kBfloat16).logits(images);
  const std::vector<double> found = as_doubles(logits_of(classifier(model, kRows), images));
  EXPECT_LT(worst_row(found, expected), tolerance(layers) / 8);
}

INSTANTIATE_TEST_SUITE_P(ResNets, ResidualRoundingTest,
                         testing::Values(LogitsCase{"resnet8", false, 7},
                                         LogitsCase{"resnet8-a", false, 7},
                                         LogitsCase{"resnet8", true, 7},
                                         LogitsCase{"resnet8-a", true, 7}),
                         name_of);

TEST_F(ResidualVotesTest, BitsDependOnNothingElse) {
  const Model model = residual_model("resnet20", true);
  const Array images = uniform({kRows, 3, 32, 32}, 4);
  const Array together = logits_of(classifier(model, kRows), images);
  for (int64_t i = 0; i < kRows; ++i) {
    EXPECT_TRUE(same_bits(logits_of(classifier(model, 1), images.part(i, 1)), together.part(i, 1)))
        << "alone: " << i;
  }
  // At other positions, among others, in a larger batch.
  const int64_t batch = 70, first = 41;
  Array many = uniform({batch, 3, 32, 32}, 5);
  std::copy_n(images.floats(), images.count(), many.part(first, kRows).floats());
  EXPECT_TRUE(same_bits(logits_of(classifier(model, batch), many).part(first, kRows), together));
}

TEST_F(ResidualVotesTest, ItsSamplerIsCheckedAndProbed) {
  const BaseClassifier f = classifier(residual_model("resnet8", true), 1003);
  const auto sampler = f.sampler({});
  EXPECT_EQ(sampler->check({3, 32, 32}), check_is_function(f, {3, 32, 32}).fingerprint);
  const Votes before = sampler->count(request_for(1, 5000));
  for (int i = 0; i < 3; ++i) sampler->probe();
  EXPECT_EQ(sampler->count(request_for(1, 5000)), before);
}

// Fed with the CPU's noise and counted there.
TEST_F(ResidualVotesTest, AreThoseOfItsLogits) {
  for (const std::string name : {"resnet8", "resnet20-a"}) {
    const BaseClassifier f =
        classifier(balanced(residual_model(name, true), request_for(1, 1)), 1001);
    SerialSampler serial(f);
    const auto sampler = f.sampler({});
    for (const int64_t n : {1, 2, 101, 1001, 2045}) {
      const Votes votes = sampler->count(request_for(1, n));
      EXPECT_EQ(votes, serial.count(request_for(1, n))) << n;
      EXPECT_EQ(std::accumulate(votes.begin(), votes.end(), int64_t{0}), n);
    }
    const Votes votes = sampler->count(request_for(1, 2045));
    EXPECT_LT(*std::max_element(votes.begin(), votes.end()), 1500);
  }
}

TEST_F(ResidualVotesTest, WhatLiesBesideChangesNothing) {
  const BaseClassifier f =
      classifier(balanced(residual_model("resnet8", true), request_for(2, 1)), 1000);
  const auto sampler = f.sampler({});
  const std::vector<VoteRequest> requests = {request_for(1, 100), request_for(2, 3001),
                                             request_for(3, 1), request_for(4, 2000)};
  const std::vector<Votes> together = sampler->count_all(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i], f.sampler({})->count(requests[i])) << i;
  }
  EXPECT_EQ(sampler->count_all({}).size(), 0U);
}

TEST_F(ResidualVotesTest, ExactNoiseIsThatOfTheCpu) {
  VoteRequest request = request_for(1, 1100);
  request.x = each(request.x, [](float v) { return std::round(255 * v) / 255; });
  const BaseClassifier f = with_exact_noise(
      classifier(balanced(residual_model("resnet8", true), request), 1000), request.sigma);
  EXPECT_EQ(make_sampler(f, 1)->count(request), SerialSampler(f).count(request));
}

// In pieces, of images that the sampler holds.
TEST_F(ResidualVotesTest, PiecesAddUpToTheWhole) {
  const BaseClassifier f =
      classifier(balanced(residual_model("resnet8", true), request_for(2, 1)), 1000);
  const auto sampler = f.sampler({});
  const std::vector<VoteRequest> requests = {request_for(1, 1500), request_for(2, 1500)};
  const std::vector<Votes> whole = sampler->count_all(requests);
  sampler->hold({requests[0].x, requests[1].x});
  Votes sum(10, 0);
  for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 400}, {400, 1100}}) {
    VoteRequest some = requests[1];
    some.first = first;
    some.n = n;
    some.held = 1;
    const Votes found = sampler->count(some);
    for (int64_t c = 0; c < 10; ++c) sum[c] += found[c];
  }
  EXPECT_EQ(sum, whole[1]);
}

// As --noise-bank asks for them.
TEST_F(ResidualVotesTest, ImagesMayShareDraws) {
  std::vector<VoteRequest> requests;
  for (uint64_t i = 0; i < 5; ++i) {
    requests.push_back({uniform({3, 32, 32}, i), 0.5, 300, {make_key(5, Purpose::kEstimation), 0}});
  }
  const BaseClassifier f = classifier(balanced(residual_model("resnet8", true), requests[0]), 500);
  SerialSampler serial(f);
  const std::vector<Votes> found = f.sampler({})->count_all(requests);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(found[i], serial.count(requests[i])) << i;
}

TEST_F(ResidualVotesTest, BrokenLogitsVoteForNobody) {
  const Model model = residual_model("resnet8", false);
  for (const float broken : {INFINITY, -INFINITY, NAN}) {
    Model last = model, first = model;
    last.weights.back() = Array::full(last.weights.back().sizes(), broken);
    EXPECT_EQ(classifier(last, 64).sampler({})->count(request_for(1, 100)), Votes(10, 0));
    first.weights.front() = Array::full(first.weights.front().sizes(), broken);
    EXPECT_EQ(classifier(first, 64).sampler({})->count(request_for(1, 100)), Votes(10, 0));
  }
}

TEST_F(ResidualVotesTest, StopsWhenAsked) {
  const auto sampler =
      classifier(residual_model("resnet8", false), 64).sampler([] { return true; });
  EXPECT_THROW(sampler->count(request_for(1, 100)), Interrupted);
}

TEST_F(ResidualVotesTest, IsWhatCountsResNets) {
  for (const bool noise_bank : {false, true}) {
    const BaseClassifier f =
        choose_classifier("cuda", residual_model("resnet20", false), noise_bank);
    EXPECT_NE(f.description.find("/hopper-residualx9504/"), std::string::npos) << f.description;
  }
}

TEST_F(ResidualVotesTest, AForeignLayerIsRefusedByName) {
  Model model = residual_model("resnet8", false);
  model.network.layers[5] = {Layer::Kind::kDropout};
  if (missing_for_torch_gpu().empty()) GTEST_SKIP() << "LibTorch runs it";
  try {
    choose_classifier("cuda", model);
    FAIL() << "not refused";
  } catch (const Error& e) {
    const std::string what = e.what();
    const std::string expected =
        "network resnet8: stage layer1.0.conv2 (conv, sum, dropout) is not";
    EXPECT_NE(what.find(expected), std::string::npos) << what;
  }
  EXPECT_EQ(choose_classifier("auto", model).description.find("hopper"), std::string::npos);
}

// Residual branches of zeros, shortcuts that pass on what they get, and two channels for the two
// signs of a sum: f(x) = [w . (x - 1/2) > 0], where w has 192 equal entries (three channels of
// every fourth pixel in every fourth row). The distance to the half-space's border is known.
Model half_space(const std::string& name) {
  Model model;
  model.network = build_network({name, {0.5, 0.5, 0.5}, {1, 1, 1}}, {3, 32, 32}, 2);
  const std::vector<Parameter> all = parameters(model.network);
  model.weights = initial_weights(model.network, Key{3});
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].fan_in == 0) continue;
    const auto ends = [&](const char* with) { return all[i].name.ends_with(with); };
    Array& w = model.weights[i];
    if (ends(".conv1.weight")) continue;  // a branch's first layer may give anything
    w = Array(w.sizes());
    const int64_t row = w.count() / w.size(0);
    if (all[i].name == "conv1.weight") {
      for (int64_t c = 0; c < 3; ++c) {
        w.floats()[c * 9 + 4] = 1;
        w.floats()[row + c * 9 + 4] = -1;
      }
    } else if (ends("downsample.0.weight")) {
      for (int64_t c = 0; c < row; ++c) w.floats()[c * row + c] = 1;
    } else if (all[i].name == "fc.weight") {
      w.floats()[row] = 1;
      w.floats()[row + 1] = -1;
    }
  }
  return model;
}

// At distance d from the border.
Array image_at(double d) {
  return Array::full({3, 32, 32}, static_cast<float>(0.5 + d / std::sqrt(192.0)));
}

TEST_F(ResidualVotesTest, OfAHalfSpaceFollowTheNormalDistribution) {
  for (const std::string name : {"resnet8", "resnet20-a"}) {
    const auto sampler = classifier(half_space(name)).sampler({});
    const int64_t n = 200'000;
    for (const double d : {-0.3, 0.0, 0.1, 0.5, 1.0}) {
      const double p = 0.5 * std::erfc(-d / 0.5 / std::sqrt(2.0));
      const Votes votes =
          sampler->count({image_at(d), 0.5, n, {make_key(1, Purpose::kEstimation)}});
      const double error = std::sqrt(p * (1 - p) / static_cast<double>(n));
      EXPECT_NEAR(static_cast<double>(votes[1]) / static_cast<double>(n), p, 4.5 * error) << d;
    }
  }
}

TEST_F(ResidualVotesTest, RadiiStayWithinAHalfSpace) {
  const auto sampler = classifier(half_space("resnet20")).sampler({});
  CertifyOptions options;
  for (const double d : {0.2, 0.5, 1.0, 1.5}) {
    const Certificate c = certify(*sampler, image_at(d), 0.5, options, 5, 0);
    EXPECT_EQ(c.predict, 1);
    EXPECT_LE(c.radius, d);
    EXPECT_GT(c.radius, 0.9 * d);
  }
}

// A radius beyond the true distance is an error, which may happen with probability alpha.
TEST_F(ResidualVotesTest, RadiiCover) {
  const auto sampler = classifier(half_space("resnet8")).sampler({});
  CertifyOptions options;
  options.n0 = 20;
  options.n = 500;
  options.alpha = 0.1;
  const double d = 0.4;
  std::vector<LabelledImage> images;
  for (uint32_t i = 0; i < 2000; ++i) images.push_back({image_at(d), i});
  int64_t wrong = 0, certified = 0;
  for (const Certificate& c : certify_all(*sampler, images, 0.5, options, 3)) {
    wrong += c.predict != kAbstain && (c.predict != 1 || c.radius > d);
    certified += c.predict == 1 && c.radius > 0;
  }
  // 4 standard errors above alpha.
  EXPECT_LT(static_cast<double>(wrong) / 2000, 0.1 + 4 * std::sqrt(0.1 * 0.9 / 2000));
  EXPECT_GT(wrong, 0);  // the test could fail
  EXPECT_GT(certified, 1900);
}

}  // namespace
}  // namespace fedsmooth

#else
TEST(ResidualVotesTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(ResidualLogitsTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(ResidualRoundingTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
