// Which passes train on a CPU. What the executor makes of them is tested with training.
#include "fedsmooth/engine/threaded_executor.h"

#include <gtest/gtest.h>

#include <typeinfo>

#include "fedsmooth/engine/cpu/lane_network.h"
#include "tests/engine/networks.h"
#include "tests/engine/passes.h"

namespace fedsmooth {
namespace {

bool same_kind(const Passes& a, const Passes& b) { return typeid(a) == typeid(b); }

void expect_same(const PassResult& a, const PassResult& b) {
  EXPECT_TRUE(same_bits(a.logits, b.logits));
  EXPECT_TRUE(same_bits(a.images, b.images));
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_TRUE(same_bits(a.weights[i], b.weights[i])) << i;
  }
}

TEST(ThreadedExecutorTest, LanesTrainWhatTheyKnow) {
  for (const std::string name : {"alexnet", "small", "resnet20"}) {
    const Network network = named_network(name);
    const auto fastest = fastest_passes(network), lanes = lane_passes(network);
    EXPECT_TRUE(same_kind(*fastest, *lanes)) << name;
  }
}

// Dropout, and group norms.
TEST(ThreadedExecutorTest, TheReferenceTrainsOtherNetworks) {
  for (const std::string name : {"alexnet-fc", "resnet8-gn"}) {
    SCOPED_TRACE(name);
    const Network network = named_network(name);
    const auto fastest = fastest_passes(network), reference = reference_passes(network);
    EXPECT_TRUE(same_kind(*fastest, *reference));
    const Weights weights = initial_weights(network, Key{1});
    const Array images = uniform({3, 3, 32, 32}, 2);
    const Stream training{make_key(1, Purpose::kDropout), 2};
    expect_same(run_passes(*fastest, weights, images, training),
                run_passes(*reference, weights, images, training));
  }
}

}  // namespace
}  // namespace fedsmooth
