// The GPU engine refuses networks that it does not compute by the stage and the part. Needs no GPU.
#include <gtest/gtest.h>

#include "fedsmooth/model/fold.h"
#include "tests/engine/networks.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/device_network.h"
#endif

namespace fedsmooth {
namespace {

#ifdef FEDSMOOTH_CUDA
using Kind = Layer::Kind;

TEST(GpuRefusalsTest, RefusesNoNamedNetworkOfUpTo2048Channels) {
  for (const std::string& name : architecture_names()) {
    if (name == "alexnet-fc") continue;
    EXPECT_EQ(network_refusal(named_network(name)), "");
  }
  EXPECT_EQ(network_refusal(named_network("alexnet-fc")),
            "the GPU engine cannot run network alexnet-fc: stage classifier.1 (linear, relu, "
            "dropout) has 4096 channels, more than 2048");
}

TEST(GpuRefusalsTest, RefusesToStandardizeUnlessItIsFolded) {
  for (const std::string name : {"resnet8-ws", "resnet8-gn-ws"}) {
    const Network network = named_network(name);
    EXPECT_NE(network_refusal(network).find(") has standardize, which"), std::string::npos);
    const Model folded = fold_batch_norm({network, initial_weights(network, Key{1})});
    EXPECT_EQ(network_refusal(folded.network), "");
  }
}

TEST(GpuRefusalsTest, RefusesOtherActivationsThanRelu) {
  for (const char* name : {"small", "resnet8"}) {
    for (const auto& [activation, part] : {std::pair{Kind::kLeakyRelu, "leaky-relu"},
                                           {Kind::kSilu, "silu"},
                                           {Kind::kGelu, "gelu"}}) {
      const std::string why = network_refusal(with_activation(named_network(name), activation));
      EXPECT_NE(why.find(fmt::format(") has {}", part)), std::string::npos) << why;
    }
  }
}
#else
TEST(GpuRefusalsTest, NeedsTheGpuEngine) { GTEST_SKIP() << "built without nvcc"; }
#endif

}  // namespace
}  // namespace fedsmooth
