// The layout of clients' vectors on the GPU. Sums run in its order, so that a change of it changes
// the bits of trained networks.
#ifdef FEDSMOOTH_CUDA

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "fedsmooth/engine/cuda/graph.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

std::string describe(const MapShape& map) {
  return fmt::format("{}x{}x{}", map.height, map.width, map.channels);
}

std::string describe(const GraphNode& n) {
  std::string text = fmt::format("{} {} {}>{}+{} {} {} {} {} {} {} {} {} {} {} {} {} {}", n.name,
                                 static_cast<int>(n.op), n.input, n.output, n.shortcut, n.kernel,
                                 n.stride, n.padding, n.block, n.pool, n.pool_stride, n.fixed,
                                 n.has_bias, n.has_norm, n.relu, n.of_mean, n.paired, n.channel);
  text += " " + describe(n.in) + " " + describe(n.map) + " " + describe(n.out);
  if (n.op != GraphNode::Op::kNone) text += fmt::format(" weight {}", n.weight);
  if (n.has_bias || n.has_norm) text += fmt::format(" bias {}", n.has_norm ? n.norm_bias : n.bias);
  if (n.has_norm) text += fmt::format(" scale {} {}", n.scale, n.groups.count);
  if (n.has_batch_norm()) text += fmt::format(" statistics {} {}", n.mean, n.variance);
  return text + "\n";
}

std::string layout_of(const GpuGraph& graph) {
  std::string text = fmt::format("{} {} {} {} {}\n", graph.channels, graph.kernels, graph.working,
                                 graph.trained, graph.size);
  for (const GraphNode& node : graph.nodes) text += describe(node);
  for (const MapShape& map : graph.maps) text += describe(map) + " ";
  for (const int position : graph.positions) text += fmt::format("{} ", position);
  return text;
}

// FNV-1a.
uint64_t digest(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

TEST(GraphLayoutTest, StaysTheSame) {
  const auto layout = [](const char* name, Family family) {
    return fmt::format("{:016x}", digest(layout_of(make_graph(named_network(name), family))));
  };
  EXPECT_EQ(layout("resnet20", Family::kRows), "d71d9abc01b6d5e9");
  EXPECT_EQ(layout("resnet20-a", Family::kRows), "6e4a91b3027aeddc");
  EXPECT_EQ(layout("resnet20-gn", Family::kRows), "a22c1809b1c3ae34");
  EXPECT_EQ(layout("resnet110", Family::kRows), "e9106ecad3e2466f");
  EXPECT_EQ(layout("alexnet", Family::kPairs), "c759453ad00c25e8");
  EXPECT_EQ(layout("small", Family::kPairs), "d30e6b1ae98ed752");
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(GraphLayoutTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
