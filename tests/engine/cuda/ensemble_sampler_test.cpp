// Votes of several networks as one on the GPU: those of the mean of their logits, bit for bit.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/ensemble_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/engine/cuda/device_sampler.h"
#include "fedsmooth/engine/cuda/kernels/wave/mean_logits.h"
#include "fedsmooth/engine/ensembles.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/smoothing/certify.h"
#include "fedsmooth/smoothing/mean_classifier.h"
#include "tests/engine/cuda/ensemble_members.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/refusal.h"
#include "tests/smoothing/uniform_noise.h"

namespace fedsmooth {
namespace {

// The oracle: each member's logits come back to the CPU, which draws the noise, adds and counts.
BaseClassifier mean_on_cpu(const std::vector<VotePasses>& members) {
  std::vector<BaseClassifier> alone;
  for (const VotePasses& passes : members) alone.push_back(classifier_by(passes));
  return mean_classifier(alone);
}

class EnsembleSamplerTest : public GpuTest {};

// By every evaluator: noise in the first layer, noise into a map, whole stages (on Hopper), rows.
class EnsembleSamplerCaseTest : public GpuTest, public testing::WithParamInterface<std::string> {};

TEST_P(EnsembleSamplerCaseTest, OneMemberVotesAsItDoesAlone) {
  const VotePasses alone = network_passes(member(GetParam(), 1), kBatch);
  const BaseClassifier f = classifier_by(alone), mean = classifier_by(mean_passes({alone}));
  for (const NoiseLaw* law : {&kFloatNoise, &kExactNoise}) {
    const auto sampler = make_sampler(mean, *law, 1), single = make_sampler(f, *law, 1);
    EXPECT_EQ(sampler->check({3, 32, 32}), single->check({3, 32, 32}));
    for (const int64_t n : {1, 100, 1024, 5017}) {
      EXPECT_EQ(sampler->count(request_for(1, n)), single->count(request_for(1, n))) << n;
    }
  }
  const Votes votes = make_sampler(mean, kFloatNoise, 1)->count(request_for(1, 5000));
  EXPECT_LT(*std::max_element(votes.begin(), votes.end()), 4000);  // noise decides
}

TEST_P(EnsembleSamplerCaseTest, VotesAreThoseOfTheMeanOfTheMembersLogits) {
  const auto members =
      passes_of({member(GetParam(), 1), member(GetParam(), 2), member(GetParam(), 3)});
  const BaseClassifier mean = classifier_by(mean_passes(members)), oracle = mean_on_cpu(members);
  for (const NoiseLaw* law : {&kFloatNoise, &kExactNoise}) {
    const auto sampler = make_sampler(mean, *law, 1);
    EXPECT_EQ(sampler->check({3, 32, 32}), check_is_function(oracle, {3, 32, 32}).fingerprint);
    SerialSampler serial(oracle, *law);
    for (const int64_t n : {1, 1023, 3000}) {
      EXPECT_EQ(sampler->count(request_for(1, n)), serial.count(request_for(1, n))) << n;
    }
  }
  EXPECT_NE(make_sampler(mean, kFloatNoise, 1)->count(request_for(1, 3000)),
            classifier_by(members[0]).sampler(kFloatNoise, {})->count(request_for(1, 3000)));
}

INSTANTIATE_TEST_SUITE_P(Networks, EnsembleSamplerCaseTest,
                         testing::Values("small", "alexnet", "resnet8", "resnet8-gn"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Members of different evaluators, on streams of their own.
class MixedEnsembleTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    models_ = {member("resnet8", 4), member("small", 5), member("resnet8-gn", 6),
               member("alexnet", 7)};
    members_ = passes_of(models_);
    mean_ = classifier_by(mean_passes(members_));
  }

  std::vector<Model> models_;
  std::vector<VotePasses> members_;
  BaseClassifier mean_;
};

TEST_F(MixedEnsembleTest, VotesAreThoseOfTheMeanOfTheMembersLogits) {
  const BaseClassifier oracle = mean_on_cpu(members_);
  for (const NoiseLaw* law : {&kFloatNoise, &kExactNoise}) {
    SerialSampler serial(oracle, *law);
    EXPECT_EQ(make_sampler(mean_, *law, 1)->count(request_for(1, 5000)),
              serial.count(request_for(1, 5000)));
  }
}

// Batches follow each other without a pause: logits that one member overwrites too early, or that
// are added before they are there, would change votes from time to time.
TEST_F(MixedEnsembleTest, SaysTheSameEveryTime) {
  const auto sampler = make_sampler(mean_, kFloatNoise, 1);
  const Votes first = sampler->count(request_for(1, 60'000));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sampler->count(request_for(1, 60'000)), first) << i;
}

TEST_F(MixedEnsembleTest, ItsSamplerIsCheckedAndProbed) {
  const auto sampler = make_sampler(mean_, kFloatNoise, 1);
  EXPECT_EQ(sampler->check({3, 32, 32}), check_is_function(mean_, {3, 32, 32}).fingerprint);
  const Votes before = sampler->count(request_for(1, 5000));
  for (int i = 0; i < 3; ++i) sampler->probe();
  EXPECT_EQ(sampler->count(request_for(1, 5000)), before);
}

TEST_F(MixedEnsembleTest, WhatLiesBesideChangesNothing) {
  const auto sampler = make_sampler(mean_, kFloatNoise, 1);
  const std::vector<VoteRequest> requests = {request_for(1, 100), request_for(2, 3001),
                                             request_for(3, 1), request_for(4, 2000)};
  const std::vector<Votes> together = sampler->count_all(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i], make_sampler(mean_, kFloatNoise, 1)->count(requests[i])) << i;
  }
}

TEST_F(MixedEnsembleTest, StopsWhenAsked) {
  const auto sampler = make_sampler(mean_, kFloatNoise, 1, [] { return true; });
  EXPECT_THROW(sampler->count(request_for(1, 100)), Interrupted);
}

TEST_F(MixedEnsembleTest, IsChosenAtOneBatch) {
  std::vector<EnsembleMember> members;
  for (const Model& model : models_) {
    members.push_back({"m", std::make_shared<const Model>(model), base_classifier(model)});
  }
  const BaseClassifier f = choose_ensemble("cuda", members, kFloatNoise);
  EXPECT_EQ(f.batch, kRowBatch);
  EXPECT_TRUE(f.description.starts_with("cuda/bf16/")) << f.description;
  EXPECT_TRUE(f.description.ends_with("/mean-of-4")) << f.description;
  EXPECT_TRUE(choose_ensemble("cpu", members, kFloatNoise).description.starts_with("cpu/"));
  EXPECT_TRUE(choose_ensemble("auto", members, kUniformNoise).description.starts_with("cpu/"));
  EXPECT_NE(refusal([&] {
              choose_ensemble("cuda", members, kUniformNoise);
            }).find(gpu_law_refusal(kUniformNoise)),
            std::string::npos);
  members[1].model = nullptr;
  members[1].name = "module.pt";
  EXPECT_NE(refusal([&] { choose_ensemble("cuda", members, kFloatNoise); }).find("module.pt: "),
            std::string::npos);
  EXPECT_TRUE(choose_ensemble("auto", members, kFloatNoise).description.starts_with("cpu/"));
}

// Two copies of one member on one device are two passes.
TEST_F(EnsembleSamplerTest, AMemberTwiceVotesAsOnce) {
  const VotePasses alone = network_passes(member("small", 1), kBatch);
  EXPECT_EQ(classifier_by(mean_passes({alone, alone}))
                .sampler(kFloatNoise, {})
                ->count(request_for(1, 5000)),
            classifier_by(alone).sampler(kFloatNoise, {})->count(request_for(1, 5000)));
}

TEST_F(EnsembleSamplerTest, ABrokenMemberVotesForNobody) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Model broken = member("small", 2);
    broken.weights.back() = Array::full(broken.weights.back().sizes(), bad);
    const auto members = passes_of({member("small", 1), broken, member("resnet8", 3)});
    EXPECT_EQ(
        classifier_by(mean_passes(members)).sampler(kFloatNoise, {})->count(request_for(1, 500)),
        Votes(10, 0));
  }
}

TEST_F(EnsembleSamplerTest, RefusesMembersThatDoNotFit) {
  const Model model = member("small", 1);
  const VotePasses here = network_passes(model, kBatch), other = network_passes(model, 64);
  EXPECT_NE(refusal([&] {
              mean_passes({here, other});
            }).find("images at a time"),
            std::string::npos);
  EXPECT_NE(refusal([] { mean_passes({}); }).find("empty"), std::string::npos);
}

// Rows have a stride of their own; rows beyond those that are asked for stay as they are.
TEST_F(EnsembleSamplerTest, LogitsAreAddedInOrderAndDivided) {
  constexpr int kRows = 333, kClasses = 7, kMembers = 3;
  std::vector<float> expected(kRows * kClasses, 0.0f);
  DeviceArray<float> sum(std::vector<float>((kRows + 1) * kClasses, -5.0f));
  std::vector<DeviceArray<float>> kept;
  for (int m = 0; m < kMembers; ++m) {
    const int stride = kClasses + 3 * m;
    const Array logits = uniform({kRows, stride}, 11 + m);
    kept.emplace_back(values_of(logits));
    const MemberLogits one{kept.back().data(), stride, sum.data(), kRows, kClasses, m, kMembers};
    check_cuda(add_logits(one, nullptr), "add_logits");
    for (int64_t i = 0; i < kRows * kClasses; ++i) {
      const float z = logits.floats()[i / kClasses * stride + i % kClasses];
      expected[i] = m == 0 ? z : expected[i] + z;
    }
  }
  for (float& v : expected) v /= kMembers;
  expected.resize((kRows + 1) * kClasses, -5.0f);
  EXPECT_EQ(sum.download(nullptr), expected);
}

// Scores of two half-spaces, whose mean is the score of a third one with a known distance.
TEST_F(EnsembleSamplerTest, VotesOfHalfSpacesFollowTheNormalDistribution) {
  using Kind = Layer::Kind;
  Layer normalize{Kind::kNormalize};
  normalize.mean = {0.5};
  normalize.sd = {1.0};
  std::vector<VotePasses> members;
  for (const float tilt : {0.2f, -0.2f}) {
    Model model;
    model.network = {"half-space", {1, 4, 4}, {normalize, {Kind::kLinear, "w", 2}}};
    Array weight({2, 16});
    for (int64_t i = 0; i < 16; ++i) {
      weight.floats()[16 + i] = 0.25f + (i % 2 == 0 ? tilt : -tilt);
      weight.floats()[i] = -weight.floats()[16 + i];
    }
    model.weights = {weight, Array({2})};
    members.push_back(gpu_passes(model, Precision::kFloat32, kBatch));
  }
  const auto sampler = classifier_by(mean_passes(members)).sampler(kFloatNoise, {});
  const int64_t n = 200'000;
  for (const double d : {-0.3, 0.1, 0.5}) {
    const Array x = Array::full({1, 4, 4}, static_cast<float>(0.5 + d / 4));
    const double p = 0.5 * std::erfc(-d / 0.5 / std::sqrt(2.0));
    const Votes votes = sampler->count({x, 0.5, n, {make_key(1, Purpose::kEstimation)}});
    const double error = std::sqrt(p * (1 - p) / static_cast<double>(n));
    EXPECT_NEAR(static_cast<double>(votes[1]) / static_cast<double>(n), p, 4.5 * error) << d;
  }
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(EnsembleSamplerTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(EnsembleSamplerCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(MixedEnsembleTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
