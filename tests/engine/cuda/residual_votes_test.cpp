// Votes of residual networks on the GPU, by either evaluator: their bits whatever lies beside them,
// and sound where the truth is known.
#include <gtest/gtest.h>

#ifdef FEDSMOOTH_CUDA

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "fedsmooth/smoothing/certify.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/engine/cuda/residual_evaluators.h"

namespace fedsmooth {
namespace {

class ResidualVotesTest : public testing::TestWithParam<Evaluator> {
 protected:
  void SetUp() override { skip_without(GetParam()); }

  // The rows' evaluator is asked for group norms too.
  static std::string resnet(int depth) {
    return fmt::format("resnet{}{}", depth, GetParam() == Evaluator::kHopper ? "" : "-gn");
  }
  static Model small_model(bool statistics) { return residual_model(resnet(8), statistics); }
  static BaseClassifier classifier(const Model& model, int batch) {
    return classifier_of(GetParam(), model, batch);
  }
  static BaseClassifier classifier(const Model& model) {
    return classifier(model, GetParam() == Evaluator::kHopper ? kResidualBatch : kRowBatch);
  }
};

INSTANTIATE_TEST_SUITE_P(Evaluators, ResidualVotesTest,
                         testing::Values(Evaluator::kHopper, Evaluator::kRows),
                         [](const auto& info) { return name_of(info.param); });

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

TEST_P(ResidualVotesTest, BitsDependOnNothingElse) {
  const Model model = residual_model(resnet(20), true);
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

TEST_P(ResidualVotesTest, ItsSamplerIsCheckedAndProbed) {
  const BaseClassifier f = classifier(small_model(true), 1003);
  const auto sampler = f.sampler(kFloatNoise, {});
  EXPECT_EQ(sampler->check({3, 32, 32}), check_is_function(f, {3, 32, 32}).fingerprint);
  const Votes before = sampler->count(request_for(1, 5000));
  for (int i = 0; i < 3; ++i) sampler->probe();
  EXPECT_EQ(sampler->count(request_for(1, 5000)), before);
}

// Fed with the CPU's noise and counted there.
TEST_P(ResidualVotesTest, AreThoseOfItsLogits) {
  for (const std::string& name : {resnet(8), std::string("resnet20-a")}) {
    const BaseClassifier f =
        classifier(balanced(residual_model(name, true), request_for(1, 1)), 1001);
    SerialSampler serial(f, kFloatNoise);
    const auto sampler = f.sampler(kFloatNoise, {});
    for (const int64_t n : {1, 2, 101, 1001, 2045}) {
      const Votes votes = sampler->count(request_for(1, n));
      EXPECT_EQ(votes, serial.count(request_for(1, n))) << n;
      EXPECT_EQ(std::accumulate(votes.begin(), votes.end(), int64_t{0}), n);
    }
    const Votes votes = sampler->count(request_for(1, 2045));
    EXPECT_LT(*std::max_element(votes.begin(), votes.end()), 1500);
  }
}

TEST_P(ResidualVotesTest, WhatLiesBesideChangesNothing) {
  const BaseClassifier f = classifier(balanced(small_model(true), request_for(2, 1)), 1000);
  const auto sampler = f.sampler(kFloatNoise, {});
  const std::vector<VoteRequest> requests = {request_for(1, 100), request_for(2, 3001),
                                             request_for(3, 1), request_for(4, 2000)};
  const std::vector<Votes> together = sampler->count_all(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i], f.sampler(kFloatNoise, {})->count(requests[i])) << i;
  }
  EXPECT_EQ(sampler->count_all({}).size(), 0U);
}

TEST_P(ResidualVotesTest, ExactNoiseIsThatOfTheCpu) {
  VoteRequest request = request_for(1, 1100);
  request.x = each(request.x, [](float v) { return std::round(255 * v) / 255; });
  const BaseClassifier f = classifier(balanced(small_model(true), request), 1000);
  EXPECT_EQ(make_sampler(f, kExactNoise, 1)->count(request),
            SerialSampler(f, kExactNoise).count(request));
}

// In pieces, of images that are on the GPU already.
TEST_P(ResidualVotesTest, PiecesAddUpToTheWhole) {
  const BaseClassifier f = classifier(balanced(small_model(true), request_for(2, 1)), 1000);
  const auto sampler = f.sampler(kFloatNoise, {});
  const std::vector<VoteRequest> requests = {request_for(1, 1500), request_for(2, 1500)};
  const std::vector<Votes> whole = sampler->count_all(requests);
  Votes sum(10, 0);
  for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 400}, {400, 1100}}) {
    VoteRequest some = requests[1];
    some.first = first;
    some.n = n;
    const Votes found = sampler->count(some);
    for (int64_t c = 0; c < 10; ++c) sum[c] += found[c];
  }
  EXPECT_EQ(sum, whole[1]);
}

TEST_P(ResidualVotesTest, BrokenLogitsVoteForNobody) {
  const Model model = small_model(false);
  for (const float broken : {INFINITY, -INFINITY, NAN}) {
    Model last = model, first = model;
    last.weights.back() = Array::full(last.weights.back().sizes(), broken);
    EXPECT_EQ(classifier(last, 64).sampler(kFloatNoise, {})->count(request_for(1, 100)),
              Votes(10, 0));
    first.weights.front() = Array::full(first.weights.front().sizes(), broken);
    EXPECT_EQ(classifier(first, 64).sampler(kFloatNoise, {})->count(request_for(1, 100)),
              Votes(10, 0));
  }
}

TEST_P(ResidualVotesTest, StopsWhenAsked) {
  const auto sampler = classifier(small_model(false), 64).sampler(kFloatNoise, [] { return true; });
  EXPECT_THROW(sampler->count(request_for(1, 100)), Interrupted);
}

class ChosenVotesTest : public testing::Test {
 protected:
  void SetUp() override { skip_without(Evaluator::kRows); }

  static std::string description(const std::string& name, const NoiseLaw& law) {
    return choose_classifier("cuda", residual_model(name, false), law).description;
  }
};

TEST_F(ChosenVotesTest, AreTheFastestThatKnowTheNetwork) {
  const std::string rows = "/rowsx2112/";
  for (const NoiseLaw* law : {&kFloatNoise, &kExactNoise}) {
    const std::string resnet = description("resnet20", *law);
    const std::string fast = has_hopper_kernels() ? "/hopper-residualx9504/" : rows;
    EXPECT_NE(resnet.find(fast), std::string::npos) << resnet;
    const std::string group_norm = description("resnet20-gn", *law);
    EXPECT_NE(group_norm.find(rows), std::string::npos) << group_norm;
  }
}

TEST_F(ChosenVotesTest, AForeignLayerIsRefusedByName) {
  Model model = residual_model("resnet8", false);
  model.network.layers[5] = {Layer::Kind::kDropout};
  if (missing_for_torch_gpu().empty()) GTEST_SKIP() << "LibTorch runs it";
  try {
    choose_classifier("cuda", model, kFloatNoise);
    FAIL() << "not refused";
  } catch (const Error& e) {
    const std::string what = e.what();
    const std::string expected =
        "network resnet8: stage layer1.0.conv2 (conv, sum, dropout) has dropout";
    EXPECT_NE(what.find(expected), std::string::npos) << what;
  }
  EXPECT_EQ(choose_classifier("auto", model, kFloatNoise).description.find("cuda"),
            std::string::npos);
}

// Residual branches of zeros, shortcuts that pass on what they get, and two channels for the two
// signs of a sum: f(x) = [w . (x - 1/2) > 0], where w has 192 equal entries (three channels of
// every fourth pixel in every fourth row). The distance to the half-space's border is known. A
// group norm after the first convolution divides both signs by the same number and subtracts
// nothing, as their sum is zero; in a shortcut it would not pass on what it gets.
Model half_space(const std::string& name) {
  Model model;
  model.network = build_network({name, {0.5, 0.5, 0.5}, {1, 1, 1}}, {3, 32, 32}, 2);
  for (Layer& block : model.network.layers) {
    if (block.shortcut.empty() || !name.ends_with("-gn")) continue;
    block.shortcut = {{Layer::Kind::kSubsample, "", block.body[0].outputs, 1, 2}};
  }
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

TEST_P(ResidualVotesTest, OfAHalfSpaceFollowTheNormalDistribution) {
  for (const std::string& name : {resnet(8), std::string("resnet20-a")}) {
    const auto sampler = classifier(half_space(name)).sampler(kFloatNoise, {});
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

TEST_P(ResidualVotesTest, RadiiStayWithinAHalfSpace) {
  const auto sampler = classifier(half_space(resnet(20))).sampler(kFloatNoise, {});
  CertifyOptions options;
  for (const double d : {0.2, 0.5, 1.0, 1.5}) {
    const Certificate c = certify(*sampler, image_at(d), 0.5, options, 5, 0);
    EXPECT_EQ(c.predict, 1);
    EXPECT_LE(c.radius, d);
    EXPECT_GT(c.radius, 0.9 * d);
  }
}

// A radius beyond the true distance is an error, which may happen with probability alpha.
TEST_P(ResidualVotesTest, RadiiCover) {
  const auto sampler = classifier(half_space(resnet(8))).sampler(kFloatNoise, {});
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
TEST(ChosenVotesTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
