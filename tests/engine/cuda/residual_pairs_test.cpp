#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include "fedsmooth/engine/cuda/device_model.h"
#include "fedsmooth/engine/cuda/row_network.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/cuda/residual_networks.h"

namespace fedsmooth {
namespace {

using ResidualPairsTest = GpuTest;

constexpr int kRows = 5;

template <typename T>
std::vector<T> read(const void* from, int64_t count) {
  std::vector<T> values(count);
  check_cuda(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "read");
  return values;
}

template <typename T>
void write(const std::vector<T>& values, void* to) {
  check_cuda(cudaMemcpy(to, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
             "write");
  // A copy from pageable memory may return before it arrives, and other streams do not wait for it.
  check_cuda(cudaDeviceSynchronize(), "write");
}

struct Passed {
  std::vector<float> logits;
  std::vector<uint16_t> gradient;  // of the input map
};

// Of the same input map and gradient of the logits.
Passed pass(const RowNetwork& device, const StackedWeights& weights, bool gradients) {
  const MapShape& image = device.graph.maps[0];
  const int64_t values = kRows * image.row_size();
  std::vector<uint16_t> input;
  for (const float v : values_of(uniform({values}, 1))) input.push_back(to_bfloat16(v - 0.5f));
  std::vector<float> output;
  for (const float v : values_of(uniform({kRows * device.graph.classes}, 2)))
    output.push_back(v - 0.5f);
  const auto passes = device.make_passes(Precision::kBfloat16, 1, kRows, gradients);
  Launches launches;
  write(input, passes->input());
  passes->run(weights, PassMode::kAnswers, launches);
  check_cuda(cudaStreamSynchronize(launches.stream()), "run");
  Passed found;
  found.logits = read<float>(passes->logits(), kRows * device.graph.classes);
  if (!gradients) return found;
  write(output, passes->output_gradient());
  passes->differentiate_images(weights, launches);
  check_cuda(cudaStreamSynchronize(launches.stream()), "differentiate_images");
  found.gradient = read<uint16_t>(passes->input_gradient(), values);
  return found;
}

TEST_F(ResidualPairsTest, PairsChangeNoBit) {
  for (const char* name : {"resnet8", "resnet14", "resnet14-a"}) {
    const Model model = residual_model(name, /*statistics=*/true);
    const DeviceModel loaded(model, Precision::kBfloat16);
    const RowNetwork paired(model.network);
    RowNetwork apart(model.network);
    for (GraphNode& node : apart.graph.nodes) node.paired = false;
    const Passed expected = pass(apart, loaded.weights(), /*gradients=*/true);
    const Passed found = pass(paired, loaded.weights(), /*gradients=*/true);
    EXPECT_EQ(found.logits, expected.logits) << name;
    EXPECT_EQ(found.gradient, expected.gradient) << name;
    EXPECT_EQ(pass(paired, loaded.weights(), /*gradients=*/false).logits, expected.logits) << name;
  }
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(ResidualPairsTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
