// Every engine refuses a stage with a part that it does not know, wherever it stands.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/cpu/fast_network.h"
#include "fedsmooth/engine/cpu/lane_network.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/engine/networks.h"
#include "tests/engine/unknown_parts.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/graph.h"
#endif

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;
using Refuse = std::function<std::string(const Network&)>;

// The message of the Bug that `use` throws; empty if it throws none.
template <typename Use>
Refuse refusal_by(const Use& use) {
  return [use](const Network& network) -> std::string {
    try {
      use(network);
    } catch (const Bug& bug) {
      return bug.what();
    }
    return {};
  };
}

// Every part that the reference knows.
Network all_parts() {
  Layer groups = layer(Kind::kGroupNorm, "gn");
  groups.groups = 2;
  return {"all",
          {2, 6, 6},
          {two_channel_normalization(), layer(Kind::kConv, "a", 4, 3, 1, 1), groups,
           layer(Kind::kRelu, ""), layer(Kind::kMaxPool, "", 0, 2, 2),
           residual({layer(Kind::kConv, "b", 6, 1), layer(Kind::kBatchNorm, "bn")},
                    {layer(Kind::kSubsample, "", 6)}),
           layer(Kind::kRelu, ""), layer(Kind::kLeakyRelu, ""), layer(Kind::kSilu, ""),
           layer(Kind::kGelu, ""), layer(Kind::kAvgPool, ""), layer(Kind::kDropout, ""),
           layer(Kind::kLinear, "c", 2)}};
}

TEST(UnknownPartsTest, TheReferenceRefusesThem) {
  expect_refusals(refusal_by([](const Network& n) { reference_passes(n); }), all_parts());
  expect_refusals(refusal_by([](const Network& n) { reference::ReferenceNetwork<double>{n}; }),
                  all_parts());
}

TEST(UnknownPartsTest, TheFastEvaluatorRefusesThem) {
  for (const char* name : {"alexnet-fc", "resnet8", "resnet8-a", "vgg16-bn", "wrn-10-2"}) {
    expect_refusals(FastNetwork::refusal, named_network(name));
  }
}

TEST(UnknownPartsTest, TheLanesRefuseThem) {
  for (const char* name : {"small", "resnet8", "resnet8-a", "resnet8-ws", "vgg16-bn", "wrn-10-2"}) {
    expect_refusals(lanes_refusal, named_network(name));
  }
}

// What falls back to the reference ends in its refusal.
TEST(UnknownPartsTest, NoWayToRunANetworkTakesThem) {
  expect_refusals(refusal_by([](const Network& n) { fastest_passes(n); }),
                  named_network("resnet8"));
  expect_refusals(refusal_by([](const Network& n) {
                    base_classifier({n, initial_weights(n, Key{1})}).make();
                  }),
                  named_network("small"));
}

#ifdef FEDSMOOTH_CUDA
TEST(UnknownPartsTest, ThePlansForTheGpuRefuseThem) {
  const auto refusal_of = [](Family family) {
    return [family](const Network& n) { return graph_refusal(n, family); };
  };
  expect_refusals(refusal_of(Family::kPairs), named_network("small"));
  for (const char* name : {"resnet8", "resnet8-a", "resnet8-gn"}) {
    expect_refusals(refusal_of(Family::kRows), named_network(name));
  }
}
#else
TEST(UnknownPartsTest, ThePlansForTheGpuRefuseThem) { GTEST_SKIP() << "built without nvcc"; }
#endif

}  // namespace
}  // namespace fedsmooth
