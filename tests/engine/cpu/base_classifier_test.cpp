#include "fedsmooth/engine/cpu/base_classifier.h"

#include <gtest/gtest.h>

#include "fedsmooth/smoothing/sampler.h"
#include "tests/engine/passes.h"

namespace fedsmooth {
namespace {

BaseClassifier named(const std::string& name) {
  ModelOptions options{name};
  set_default_normalization(options, "cifar10", 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  return base_classifier(Model{network, initial_weights(network, Key{1})});
}

// Position, neighbours and repetition, bit for bit, with the instructions of this machine.
TEST(BaseClassifierTest, NetworksAreFunctions) {
  for (const std::string name : {"alexnet", "small", "resnet20"}) {
    EXPECT_NO_THROW(check_is_function(named(name), {3, 32, 32})) << name;
  }
}

// A batch norm after a convolution does not keep a network from the fast evaluator.
TEST(BaseClassifierTest, FoldsBatchNorms) {
  Layer normalize{Layer::Kind::kNormalize};
  normalize.mean = normalize.sd = {0.25, 0.25, 0.25};
  const Network network = {"test",
                           {3, 8, 8},
                           {normalize,
                            {Layer::Kind::kConv, "conv", 8, 3, 1, 1},
                            {Layer::Kind::kBatchNorm, "bn"},
                            {Layer::Kind::kRelu},
                            {Layer::Kind::kLinear, "linear", 4}}};
  const Model model = {network, initial_weights(network, Key{1})};
  const BaseClassifier f = base_classifier(model);
  EXPECT_EQ(f.description.rfind("cpu/fp32/fastx192/", 0), 0U) << f.description;
  const Array images = Array::full({f.batch, 3, 8, 8}, 0.5f);
  // Sums of at most 512 terms, of sizes and signs that make them about as large as their terms.
  EXPECT_LE(difference(f.make()(images), reference_logits(network, model.weights, images)),
            512 * 0x1p-24);
}

TEST(BaseClassifierTest, DescribesWhatRounds) {
  const std::string description = named("small").description;
  EXPECT_EQ(description, "cpu/fp32/fastx192/" + cpu_arithmetic());
  EXPECT_EQ(named("resnet8").description, description);
  EXPECT_EQ(named("resnet8-gn").description, "cpu/fp32/referencex192/" + cpu_arithmetic());
}

}  // namespace
}  // namespace fedsmooth
