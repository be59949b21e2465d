// The first layer of noisy copies in one kernel: to the bit what the kernels that draw and multiply
// one after the other give, whatever lies beside a copy.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/noisy_layer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <utility>

#include "fedsmooth/base/random.h"
#include "fedsmooth/engine/cuda/device_sampler.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

constexpr int kSquares = 16, kChannels = 64;
constexpr uint16_t kUntouched = 0xabcd;

Model model_called(const std::string& name) {
  const Network network = named_network(name);
  return {network, initial_weights(network, Key{1}), 0.5, {}};
}

// A list of copies of four images, of different streams, sizes and samples.
class NoisyCopyList {
 public:
  explicit NoisyCopyList(float first_pixel) {
    Array x = uniform({4, 3, 32, 32}, 3);
    x.floats()[0] = first_pixel;
    x_ = DeviceArray<float>(std::vector<float>(x.floats(), x.floats() + x.count()));
    const auto key = [](uint64_t seed) { return make_key(seed, Purpose::kEstimation).value; };
    copies_ = DeviceArray<NoisyCopies>(std::vector<NoisyCopies>{{key(1), 7, 0, 0.5f, 0, 0, 0},
                                                                {key(2), 9, 5, 0.25f, 11, 3, 3},
                                                                {key(3), 0, 0, 1.0f, ~0u, 2, 60},
                                                                {key(4), 1, 2, 0.0f, 0, 1, 200},
                                                                {key(5), 7, 0, 0.12f, 5, 1, 333}});
    check_cuda(cudaStreamSynchronize(nullptr), "copies");
  }

  // `used` copies from `begin` on, in a map of `rows`.
  NoisyRows rows(int rows, int64_t begin, int64_t used) const {
    NoisyRows r;
    r.copies = copies_.data();
    r.requests = static_cast<int>(copies_.size());
    r.x = x_.data();
    r.begin = begin;
    r.total = begin + used;
    r.rows = rows;
    r.image_size = 3 * 32 * 32;
    r.area = 32 * 32;
    return r;
  }

 private:
  DeviceArray<float> x_;
  DeviceArray<NoisyCopies> copies_;
};

class NoisyLayerTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    model_.emplace(model_called("alexnet"), Precision::kBfloat16);
    if (!model_->pairs().tables.front().by_output->view().tiling.hopper)
      GTEST_SKIP() << "not on Hopper";
  }

  // From the map of the second node on both go the same way.
  void enqueue_apart(NoisyRows rows, PairPasses& passes, Launches& launches) const {
    rows.map = model_->network().first_map(rows.rows);
    rows.out = passes.input();
    launches.add("noise", make_noisy_input(Precision::kBfloat16, rows, launches.stream()));
    passes.forward(model_->weights(), launches);
  }
  void enqueue_in_one(const NoisyRows& rows, void* out, Launches& launches) const {
    FirstLayerRows layer = noisy_layer(*model_);
    layer.rows = rows;
    layer.out = out;
    launches.add("noise", make_first_layer(layer, launches.stream()));
  }

  // Bits [square, row, channel].
  std::vector<uint16_t> apart(const NoisyRows& rows) const {
    PairPasses passes(model_->pairs(), Precision::kBfloat16, 1, rows.rows, /*gradients=*/false);
    Launches launches;
    enqueue_apart(rows, passes, launches);
    std::vector<uint16_t> bits(int64_t{kSquares} * rows.rows * kChannels);
    check_cuda(cudaMemcpyAsync(bits.data(), passes.node_output(0), bits.size() * 2,
                               cudaMemcpyDeviceToHost, launches.stream()),
               "a map");
    check_cuda(cudaStreamSynchronize(launches.stream()), "a map");
    return bits;
  }
  std::vector<uint16_t> in_one(const NoisyRows& rows) const {
    const DeviceArray<uint16_t> out(
        std::vector<uint16_t>(int64_t{kSquares} * rows.rows * kChannels, kUntouched));
    check_cuda(cudaStreamSynchronize(nullptr), "a map");
    Launches launches;
    enqueue_in_one(rows, out.data(), launches);
    return out.download(launches.stream());
  }

  // How many values of the used rows differ, and how many of the others were written.
  static std::pair<int64_t, int64_t> differences(const std::vector<uint16_t>& found,
                                                 const std::vector<uint16_t>& expected,
                                                 const NoisyRows& rows) {
    int64_t different = 0, written = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / kChannels % rows.rows;
      const bool used = rows.begin + row < rows.total;
      different += used && found[i] != expected[i];
      written += !used && found[i] != kUntouched;
    }
    return {different, written};
  }

  std::optional<DeviceModel> model_;
};

TEST_F(NoisyLayerTest, IsAlexNetsInBfloat16Alone) {
  const PairNetwork small(named_network("small"));
  EXPECT_TRUE(has_noisy_layer(model_->pairs(), Precision::kBfloat16));
  EXPECT_FALSE(has_noisy_layer(model_->pairs(), Precision::kFloat32));
  EXPECT_FALSE(has_noisy_layer(small, Precision::kBfloat16));
}

TEST_F(NoisyLayerTest, GivesTheBitsOfTheKernelsApart) {
  const NoisyCopyList list(0.5f);
  struct Case {
    int rows;
    int64_t begin, used;
  };
  for (const Case& c : {Case{64, 0, 1}, Case{64, 2, 63}, Case{64, 5, 64}, Case{1024, 0, 1001},
                        Case{kGpuBatch, 17, kGpuBatch}, Case{kGpuBatch, kGpuBatch, 133}}) {
    const NoisyRows rows = list.rows(c.rows, c.begin, c.used);
    const auto [different, written] = differences(in_one(rows), apart(rows), rows);
    EXPECT_EQ(different, 0) << c.rows << " rows, " << c.used << " used";
    EXPECT_EQ(written, 0) << c.rows << " rows, " << c.used << " used";
  }
}

TEST_F(NoisyLayerTest, ACopysBitsDependOnNothingElse) {
  const NoisyCopyList list(0.5f);
  const int together = 1024;
  const std::vector<uint16_t> all = in_one(list.rows(together, 0, together));
  for (const int copy : {0, 61, 500, 1023}) {
    const std::vector<uint16_t> alone = in_one(list.rows(1, copy, 1));
    int64_t different = 0;
    for (int square = 0; square < kSquares; ++square) {
      for (int k = 0; k < kChannels; ++k) {
        different += alone[square * kChannels + k] !=
                     all[(int64_t{square} * together + copy) * kChannels + k];
      }
    }
    EXPECT_EQ(different, 0) << copy;
  }
}

// Not a number, or infinite: by its maxima too.
TEST_F(NoisyLayerTest, BrokenPixelsBreakTheSameValues) {
  for (const float broken : {NAN, INFINITY, -INFINITY}) {
    const NoisyCopyList list(broken);
    const NoisyRows rows = list.rows(64, 0, 10);
    const std::vector<uint16_t> expected = apart(rows);
    const auto [different, written] = differences(in_one(rows), expected, rows);
    EXPECT_EQ(different, 0) << broken;
    EXPECT_FALSE(std::isfinite(from_bfloat16(
        *std::max_element(expected.begin(), expected.begin() + int64_t{3} * kChannels))))
        << broken;  // the test could fail
  }
}

// A full batch, from the noise to the logits, either way.
using SlowNoisyLayerTest = NoisyLayerTest;

TEST_F(SlowNoisyLayerTest, TakesLessTimeThanTheKernelsApart) {
  const NoisyCopyList list(0.5f);
  const NoisyRows rows = list.rows(kGpuBatch, 0, kGpuBatch);
  PairPasses passes(model_->pairs(), Precision::kBfloat16, 1, kGpuBatch, /*gradients=*/false);
  Launches launches;
  constexpr int kBatches = 20;
  // Microseconds of the noise's phase and of all, a batch.
  const auto time = [&](const auto& enqueue) {
    std::pair<double, double> us;
    for (int warm = 0; warm < 2; ++warm) {
      us = {};
      const auto costs = launches.measure([&] {
        for (int i = 0; i < kBatches; ++i) enqueue();
      });
      for (const auto& [phase, cost] : costs) {
        us.second += cost.seconds * 1e6 / kBatches;
        if (phase == "noise") us.first += cost.seconds * 1e6 / kBatches;
      }
    }
    return us;
  };
  const auto apart = time([&] { enqueue_apart(rows, passes, launches); });
  const auto in_one = time([&] {
    enqueue_in_one(rows, passes.node_output(0), launches);
    passes.forward_from(1, model_->weights(), launches);
  });
  std::cout << fmt::format(
      "us a batch: apart {:.1f} (noise {:.1f}), in one {:.1f} (first layer {:.1f})\n", apart.second,
      apart.first, in_one.second, in_one.first);
  EXPECT_LT(in_one.second, apart.second);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(NoisyLayerTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
