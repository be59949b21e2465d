// Every objective, trained on the built-in images, certifies more than training without noise does.
// All begin with the same weights, trained without noise: from the first ones on, noise keeps this
// small network from learning for minutes.
#include <gtest/gtest.h>

#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/smoothing/certify.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.2, kRadius = 0.1;
constexpr int64_t kImages = 4000, kTested = 100;

const Dataset& images() {
  static const Dataset data = make_shapes(Split::kTrain, kImages, 0);
  return data;
}

// The label with a share of 0.82, as a teacher that is sure.
Array sure_votes() {
  Array votes = Array::full({kImages, 10}, 0.02f);
  for (int64_t i = 0; i < kImages; ++i) votes.floats()[10 * i + images().label(i)] = 0.82f;
  return votes;
}

Weights trained(Method method, const Weights& from, int64_t rounds, double rate) {
  LocalTask task{small_network(), images(), /*augment=*/false, method};
  task.local = {.steps = 15, .batch = 16, .learning_rate = rate};
  task.smoothing = {kSigma, 2};
  task.attack = {.steps = 2, .epsilon = kSigma / 4};
  task.teacher = sure_votes();
  task.image_weights = Array::full({kImages}, 1.0f);
  // What was published for large networks keeps a small one from learning.
  if (method == Method::kConsistency || method == Method::kMacer) task.objective.lambda = 2;
  if (method == Method::kSmoothMix) task.objective = {.lambda = 1, .steps = 2, .step_size = 0.1};
  const Partition clients({.kind = PartitionKind::kIid, .clients = 4, .samples_per_client = 1000},
                          images().labels, 10, 0);
  ThreadedExecutor executor(2);
  ServerState state{0, from, {}};
  const OnRound on_round = [](const auto&, const auto&) { return true; };
  train({task, {.rounds = rounds, .clients_per_round = 4}, clients, state, on_round}, executor);
  return state.global;
}

const Weights& begun() {
  static const Weights weights =
      trained(Method::kStandard, initial_weights(small_network(), Key{1}), 60, 0.05);
  return weights;
}

// Share of test images that are answered right at kRadius, with certainty.
double certified(const Weights& weights) {
  const Dataset test = make_shapes(Split::kTest, kTested, 0);
  const Model model{small_network(), weights, kSigma, test.class_names};
  const auto sampler = make_sampler(choose_classifier("cpu", model, kFloatNoise), kFloatNoise, 2);
  const CertifyOptions options{.n0 = 50, .n = 300, .only_correct = true};
  std::vector<LabelledImage> asked;
  for (uint32_t i = 0; i < kTested; ++i) asked.push_back({test.image(i), i, test.label(i)});
  double right = 0;
  for (const Certificate& c : certify_all(*sampler, asked, kSigma, options, 0)) {
    right += c.predict >= 0 && c.radius >= kRadius;  // wrong ones are not certified
  }
  return right / kTested;
}

class SlowObjectivesTest : public testing::TestWithParam<std::pair<std::string, Method>> {};

TEST_P(SlowObjectivesTest, CertifiesMoreThanStandard) {
  static const double plain = certified(trained(Method::kStandard, begun(), 15, 0.01));
  const double robust = certified(trained(GetParam().second, begun(), 15, 0.01));
  RecordProperty("plain", std::to_string(plain));
  RecordProperty("robust", std::to_string(robust));
  EXPECT_GT(robust, plain + 0.05) << "standard certifies " << plain;
}

INSTANTIATE_TEST_SUITE_P(Methods, SlowObjectivesTest,
                         testing::Values(std::pair("Gaussian", Method::kGaussian),
                                         std::pair("SmoothAdv", Method::kSmoothAdv),
                                         std::pair("Consistency", Method::kConsistency),
                                         std::pair("Stability", Method::kStability),
                                         std::pair("Macer", Method::kMacer),
                                         std::pair("SmoothMix", Method::kSmoothMix),
                                         std::pair("CatRs", Method::kCatRs),
                                         std::pair("Sun", Method::kSun)),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace fedsmooth
