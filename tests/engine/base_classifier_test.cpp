#include "fedsmooth/engine/base_classifier.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {
namespace {

BaseClassifier named(const std::string& name) {
  ModelOptions options{name};
  set_default_normalization(options, "cifar10", 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  return base_classifier(Model{network, initial_weights(network, Key{1})});
}

// Position, neighbours and repetition, bit for bit, with the libraries of this machine.
TEST(BaseClassifierTest, NetworksAreFunctions) {
  for (const std::string name : {"alexnet", "small", "resnet20"}) {
    EXPECT_NO_THROW(check_is_function(named(name), {3, 32, 32})) << name;
  }
}

TEST(BaseClassifierTest, DescribesWhatRounds) {
  const std::string description = named("small").description;
  EXPECT_EQ(description.rfind("cpu/fp32/fastx192/", 0), 0U) << description;
  EXPECT_NE(description.find("/torch-"), std::string::npos);
  EXPECT_NE(description, named("resnet20").description);
}

}  // namespace
}  // namespace fedsmooth
