// Votes of several groups' networks on the GPU: answers and gaps of the majority, copy by copy.
#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/engine/cuda/ensemble_sampler.h"
#include "fedsmooth/engine/ensembles.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/smoothing/group_classifier.h"
#include "tests/engine/cuda/ensemble_members.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

// The oracle: each member's logits come back to the CPU, which draws the noise and counts.
BaseClassifier majority_on_cpu(const std::vector<VotePasses>& members) {
  std::vector<BaseClassifier> alone;
  for (const VotePasses& passes : members) alone.push_back(classifier_by(passes));
  return group_classifier(alone);
}

class GroupSamplerTest : public GpuTest {};

TEST_F(GroupSamplerTest, VotesAndGapsAreThoseOfTheCpu) {
  std::vector<Model> models;
  for (uint64_t seed = 1; seed <= 5; ++seed) models.push_back(member("small", seed));
  models.push_back(member("resnet8", 6));
  models.push_back(member("resnet8-gn", 7));
  const auto members = passes_of(models);
  const BaseClassifier f = classifier_by(group_passes(members)), oracle = majority_on_cpu(members);
  EXPECT_EQ(f.groups, 7);
  EXPECT_EQ(f.classes, 10);
  const std::vector<VoteRequest> requests = {request_for(1, 3000), request_for(2, 1),
                                             request_for(3, 1023)};
  const std::vector<int64_t> classes = {0, 9, 4};
  for (const NoiseLaw* law : {&kFloatNoise, &kExactNoise}) {
    const auto sampler = make_sampler(f, *law, 1);
    SerialSampler serial(oracle, *law);
    EXPECT_EQ(sampler->check({3, 32, 32}), check_is_function(oracle, {3, 32, 32}).fingerprint);
    const auto found = sampler->count_gaps(requests, classes);
    const auto expected = serial.count_gaps(requests, classes);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(found[i].votes, expected[i].votes) << i;
      EXPECT_EQ(found[i].gaps, expected[i].gaps) << i;
      EXPECT_EQ(sampler->count(requests[i]), expected[i].votes) << i;
    }
    EXPECT_GT(found[0].gaps[0] + found[0].gaps[1], 0);  // noise decides
  }
}

// One that votes for nobody, and one more class than a warp has lanes.
TEST_F(GroupSamplerTest, EveryGapIsCountedAsOnTheCpu) {
  constexpr int kRows = 5000, kClasses = 37, kGroups = 45;
  std::vector<float> logits(int64_t{kRows} * kGroups * kClasses);
  Draws draws({make_key(3, Purpose::kEstimation)});
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t liked = row % 4;  // few classes, so that ties are frequent
    for (int64_t g = 0; g < kGroups; ++g) {
      float* z = logits.data() + (row * kGroups + g) * kClasses;
      const int64_t spread = 2 + row % (kClasses - 1);
      z[(liked + draws.below(spread)) % kClasses] = 1;
      if (row % 7 == 0 && g % 3 == 0) z[5] = NAN;
      if (row % 100 == 0) z[5] = INFINITY;
    }
  }
  std::vector<NoisyCopies> copies(2);
  copies[1].first = 1234;
  const std::vector<int32_t> gaps_of = {2, 36};
  std::vector<VotesAndGaps> expected(2, VotesAndGaps{Votes(kClasses, 0)});
  for (int i = 0; i < 2; ++i) {
    expected[i].gaps_of = gaps_of[i];
    expected[i].gaps.assign(kGroups + 2, 0);
  }
  for (int64_t row = 0; row < kRows; ++row) {
    expected[row >= copies[1].first].add_copy(logits.data() + row * kGroups * kClasses, kGroups);
  }
  const DeviceArray<float> z(logits);
  const DeviceArray<NoisyCopies> list(copies);
  const DeviceArray<int32_t> of(gaps_of);
  DeviceArray<VoteCounter> counts(std::vector<VoteCounter>(2 * kClasses)),
      gaps(std::vector<VoteCounter>(2 * (kGroups + 2)));
  NoisyRows rows;
  rows.copies = list.data();
  rows.requests = 2;
  rows.total = kRows;
  rows.rows = kRows + 100;  // the last batch is short
  check_cuda(
      count_group_votes({rows, z.data(), kClasses, kGroups, counts.data(), of.data(), gaps.data()},
                        nullptr),
      "count_group_votes");
  const std::vector<VoteCounter> votes = counts.download(nullptr), widths = gaps.download(nullptr);
  for (int i = 0; i < 2; ++i) {
    for (int64_t c = 0; c < kClasses; ++c) {
      EXPECT_EQ(static_cast<int64_t>(votes[i * kClasses + c]), expected[i].votes[c]) << i << c;
    }
    for (int64_t j = 0; j < kGroups + 2; ++j) {
      EXPECT_EQ(static_cast<int64_t>(widths[i * (kGroups + 2) + j]), expected[i].gaps[j]) << i << j;
    }
  }
}

TEST_F(GroupSamplerTest, IsChosenOrRefusedByName) {
  std::vector<EnsembleMember> members;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const Model model = member("small", seed);
    members.push_back({"m", std::make_shared<const Model>(model), base_classifier(model)});
  }
  const BaseClassifier f = choose_groups("cuda", members, kFloatNoise);
  EXPECT_TRUE(f.description.starts_with("cuda/bf16/")) << f.description;
  EXPECT_TRUE(f.description.ends_with("/majority-of-2")) << f.description;
  EXPECT_TRUE(choose_groups("cpu", members, kFloatNoise).description.starts_with("cpu/"));
  members[1].model = nullptr;
  members[1].name = "module.pt";
  EXPECT_NE(refusal([&] { choose_groups("cuda", members, kFloatNoise); }).find("module.pt: "),
            std::string::npos);
  EXPECT_NE(refusal([] { group_passes({}); }).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(GroupSamplerTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
