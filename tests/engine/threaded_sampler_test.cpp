#include "fedsmooth/engine/threaded_sampler.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
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

TEST(ThreadedSamplerTest, PassesErrorsOn) {
  const Classifier f = [](const Array&) -> Array { throw Error("no"); };
  ThreadedSampler sampler(fixed_batch(f, 2), kFloatNoise, 2);
  EXPECT_THROW(sampler.count({Array::full({1, 2, 2}, 0.5f), 0.25, 1000, {}}), Error);
}

}  // namespace
}  // namespace fedsmooth
