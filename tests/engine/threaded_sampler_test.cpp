#include "fedsmooth/engine/threaded_sampler.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/smoothing/group_classifier.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

BaseClassifier small_network() {
  ModelOptions options{"small"};
  set_default_normalization(options, "shapes", 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  Weights weights = initial_weights(network, Key{7});
  for (Array& w : weights)
    w = each(w, [](float v) { return 3 * v; });  // spread the logits, so that votes differ
  return base_classifier(Model{network, weights});
}

TEST(ThreadedSamplerTest, CountsTheVotesOfTheSerialSampler) {
  const BaseClassifier f = small_network();
  const Array image = Array::full({3, 32, 32}, 0.4f);
  const Stream stream{make_key(5, Purpose::kEstimation), 17};
  SerialSampler serial(f, kFloatNoise);
  for (const int64_t n : {1, 100, 256, 257, 2000}) {
    const Votes expected = serial.count({image, 0.5, n, stream});
    for (const int threads : {1, 2, 3, 5}) {
      ThreadedSampler sampler(f, kFloatNoise, threads);
      EXPECT_EQ(sampler.count({image, 0.5, n, stream}), expected) << n << " on " << threads;
      EXPECT_EQ(sampler.count({image, 0.5, n, stream}), expected) << "again";
    }
  }
}

TEST(ThreadedSamplerTest, CountsTheGapsOfTheSerialSampler) {
  const BaseClassifier network = small_network();
  const BaseClassifier other = fixed_batch(constant_class(3, 10), 10, network.batch);
  const BaseClassifier f = group_classifier({network, other, network});
  const Array image = Array::full({3, 32, 32}, 0.4f);
  std::vector<VoteRequest> requests;
  for (uint32_t i = 0; i < 3; ++i) {
    requests.push_back({image, 0.5, 100 + i, {make_key(5, Purpose::kEstimation), i}});
  }
  const std::vector<int64_t> classes = {3, 0, 7};
  SerialSampler serial(f, kFloatNoise);
  const std::vector<VotesAndGaps> expected = serial.count_gaps(requests, classes);
  for (const int threads : {1, 3}) {
    ThreadedSampler sampler(f, kFloatNoise, threads);
    const std::vector<VotesAndGaps> found = sampler.count_gaps(requests, classes);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(found[i].votes, expected[i].votes) << threads;
      EXPECT_EQ(found[i].gaps, expected[i].gaps) << threads;
    }
  }
}

// A single product of a whole image: nothing but the arithmetic runs on all threads at once.
TEST(ThreadedSamplerTest, ConcurrentProductsAreRight) {
  ModelOptions options{"layers"};
  options.layers = {{Layer::Kind::kLinear, "classifier", 10}};
  set_default_normalization(options, "shapes", 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  const BaseClassifier f = base_classifier(Model{network, initial_weights(network, Key{1})});
  const Array image = Array::full({3, 32, 32}, 0.5f);
  SerialSampler serial(f, kFloatNoise);
  ThreadedSampler threaded(f, kFloatNoise, 4);
  for (uint32_t i = 0; i < 10; ++i) {
    const Stream stream{make_key(0, Purpose::kEstimation), i};
    EXPECT_EQ(threaded.count({image, 0.5, 5000, stream}), serial.count({image, 0.5, 5000, stream}));
  }
}

// The noisy copies of an earlier image are no room for those of a larger one.
TEST(ThreadedSamplerTest, CountsImagesOfSeveralShapes) {
  const Classifier f = [](const Array& images) {
    Array logits({images.size(0), 2});
    const int64_t last = images.count() / images.size(0) - 1;
    for (int64_t i = 0; i < images.size(0); ++i) {
      logits.floats()[2 * i] = images[i].floats()[last];
    }
    return logits;
  };
  ThreadedSampler threaded(fixed_batch(f, 2), kFloatNoise, 2);
  SerialSampler serial(fixed_batch(f, 2), kFloatNoise);
  for (const int64_t side : {2, 5, 3}) {
    const VoteRequest request{Array::full({1, side, side}, 0.1f), 0.25, 1000, {}};
    const Votes votes = SerialSampler(fixed_batch(f, 2), kFloatNoise).count(request);
    EXPECT_EQ(threaded.count(request), votes);
    EXPECT_EQ(serial.count(request), votes);
  }
}

TEST(ThreadedSamplerTest, PassesErrorsOn) {
  const Classifier f = [](const Array&) -> Array { throw Error("no"); };
  ThreadedSampler sampler(fixed_batch(f, 2), kFloatNoise, 2);
  EXPECT_THROW(sampler.count({Array::full({1, 2, 2}, 0.5f), 0.25, 1000, {}}), Error);
}

}  // namespace
}  // namespace fedsmooth
