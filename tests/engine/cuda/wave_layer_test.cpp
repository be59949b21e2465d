// The first layer of a wave's examples in one kernel: to the bit what the kernels that make the
// input and multiply it one after the other give, and so the same steps.
#ifdef FEDSMOOTH_CUDA

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>

#include "fedsmooth/engine/cuda/noisy_layer.h"
#include "fedsmooth/engine/cuda/pair_passes.h"
#include "fedsmooth/engine/cuda/wave.h"
#include "tests/arrays.h"
#include "tests/engine/cuda/batched_tasks.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

constexpr int kPixels = 100, kInputs = 48, kSquares = 16, kOutputs = 64, kTaps = 9;
constexpr int kImage = 3 * 32 * 32, kKernel = kTaps * kInputs * kOutputs;
constexpr int64_t kClientSize = kKernel + kOutputs;

// Copies of an image: clean ones, or with noise, of up to two kinds.
struct Copies {
  int clean = 0, noisy = 0, more_noisy = 0;
};
struct Case {
  int clients, batch;
  Copies copies;

  int each() const { return copies.clean + copies.noisy + copies.more_noisy; }
  int rows() const { return (batch * each() + 63) / 64 * 64; }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("{} clients, {} images, {} clean, {} and {} noisy copies", c.clients, c.batch,
                      c.copies.clean, c.copies.noisy, c.copies.more_noisy);
}

// In [-size, size).
std::vector<float> draw(int64_t count, uint64_t seed, float size) {
  const Array drawn = uniform({count}, seed);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = (2 * drawn.floats()[i] - 1) * size;
  return values;
}

// Images that all agree somewhere, for equal maxima: everywhere, along rows, or along columns; with
// zeros of both signs in the first color.
void make_even(float* image, int kind) {
  for (int i = 0; i < kImage; ++i) {
    const int row = i / 32 % 32, column = i % 32, along = kind == 1 ? row : kind == 2 ? column : 0;
    image[i] = 0.25f + 0.03f * static_cast<float>(along * 7 % 16);
    if (kind == 3 && i < 1024) image[i] = i % 3 == 0 ? -0.0f : 0.0f;
  }
}

struct FoundBits {
  std::vector<uint16_t> out, input;
  std::vector<uint8_t> choice;
};

// A wave's images, noises and weights of the layer, and both ways through it.
class WaveLayer {
 public:
  WaveLayer(const PairNetwork& device, const Case& c) : device_(device), case_(c) {
    const int64_t images = int64_t{c.clients} * c.batch;
    std::vector<float> x = draw(images * kImage, 1, 1);
    std::vector<float> noise = draw(images * c.copies.noisy * kImage, 2, 0.5f);
    for (int i = 0; i < std::min<int64_t>(4, images); ++i) make_even(x.data() + i * kImage, i);
    // The first noises are none, so that noisy copies are even too.
    std::fill_n(noise.begin(), std::min<int64_t>(std::ssize(noise), 4 * kImage), 0.0f);
    if (c.clients > 2) {  // broken clients, in the midst
      float* broken = x.data() + int64_t{c.clients / 2} * c.batch * kImage;
      broken[1000] = NAN;
      broken[kImage - 1] = std::numeric_limits<float>::infinity();
    }
    std::vector<float> weights = draw(c.clients * kClientSize, 3, 0.1f);
    x_ = DeviceArray<float>(x);
    noise_ = DeviceArray<float>(noise);
    more_ = DeviceArray<float>(draw(images * c.copies.more_noisy * kImage, 4, 0.5f));
    weights_ = DeviceArray<float>(weights);
    working_ = DeviceArray<uint16_t>(rounded(weights));
    // A color is not shifted: zeros keep their sign.
    mean_ = DeviceArray<float>(std::vector<float>{0.0f, 0.4f, 0.3f});
    scale_ = DeviceArray<float>(std::vector<float>{4.0f, 3.7f, 3.1f});
    const int64_t rows = int64_t{c.clients} * c.rows();
    out_ = DeviceArray<uint16_t>(rows * kSquares * kOutputs);
    choice_ = DeviceArray<uint8_t>(rows * kSquares * kOutputs);
    input_ = DeviceArray<uint16_t>(rows * kPixels * kInputs);
    check_cuda(cudaStreamSynchronize(nullptr), "a layer");
  }

  WaveShape shape() const {
    WaveShape s;
    s.clients = case_.clients;
    s.batch = case_.batch;
    s.noises = case_.each();
    s.rows = case_.rows();
    s.channels = 3;
    s.height = s.width = 32;
    s.image_size = kImage;
    return s;
  }

  cudaError_t make_input() const {
    return fedsmooth::make_input(Precision::kBfloat16, shape(), images(), nullptr);
  }
  cudaError_t multiply() const {
    const GraphNode& first = device_.graph.nodes.front();
    MapProduct p;
    p.clients = case_.clients;
    p.rows = case_.rows();
    p.depth = kInputs;
    p.columns = kOutputs;
    p.left = input_.data();
    p.kernel = working_.data();
    p.kernel_client = p.bias_client = kClientSize;
    p.pairs = device_.tables.front().by_output->view();
    p.left_pixels = kPixels;
    p.taps = kTaps;
    p.out = out_.data();
    p.bias = weights_.data() + kKernel;
    p.relu = first.relu;
    p.pool_columns = first.out.width;
    p.choice = choice_.data();
    return multiply_maps(Precision::kBfloat16, p, nullptr);
  }
  cudaError_t in_one(bool input) const {
    FirstLayerWave w;
    w.shape = shape();
    w.images = images();
    if (!input) w.images.out = nullptr;
    w.kernel = working_.data();
    w.bias = weights_.data() + kKernel;
    w.weights_client = kClientSize;
    w.out = out_.data();
    w.choice = choice_.data();
    return make_first_layer(w, nullptr);
  }

  // All that a launch leaves, on memory full of a byte.
  template <class Launch>
  FoundBits bits_of(uint8_t before, const Launch& launch) const {
    check_cuda(cudaMemset(out_.data(), before, out_.size() * 2), "a map");
    check_cuda(cudaMemset(choice_.data(), before, choice_.size()), "a map");
    check_cuda(cudaMemset(input_.data(), before, input_.size() * 2), "a map");
    launch();
    check_cuda(cudaStreamSynchronize(nullptr), "a layer");
    return {out_.download(nullptr), input_.download(nullptr), choice_.download(nullptr)};
  }

 private:
  InputMap images() const {
    const Copies& n = case_.copies;
    const ExampleCopies noisy{x_.data(), noise_.data(), n.noisy};
    InputMap m;
    m.first = n.clean > 0 ? ExampleCopies{x_.data(), nullptr, n.clean} : noisy;
    if (n.clean > 0 && n.noisy > 0) m.second = noisy;
    if (n.more_noisy > 0) m.second = {x_.data(), more_.data(), n.more_noisy};
    m.map = {MapLayout::pixels_first(shape().rows, kPixels),
             kPixels,
             kInputs,
             device_.source.data(),
             mean_.data(),
             scale_.data()};
    m.out = input_.data();
    return m;
  }

  const PairNetwork& device_;
  Case case_;
  DeviceArray<float> x_, noise_, more_, weights_, mean_, scale_;
  DeviceArray<uint16_t> working_, out_, input_;
  DeviceArray<uint8_t> choice_;
};

template <typename T>
int64_t differences(const std::vector<T>& a, const std::vector<T>& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

class WaveLayerTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    device_.emplace(network_called("alexnet"));
    if (!has_noisy_layer(*device_, Precision::kBfloat16)) GTEST_SKIP() << "not on Hopper";
  }

  std::optional<PairNetwork> device_;
};
class SlowWaveLayerTest : public WaveLayerTest {};

class WaveLayerCaseTest : public WaveLayerTest, public testing::WithParamInterface<Case> {};

TEST_P(WaveLayerCaseTest, GivesTheBitsOfTheKernelsApart) {
  const WaveLayer layer(*device_, GetParam());
  const FoundBits expected = layer.bits_of(0x5a, [&] {
    check_cuda(layer.make_input(), "make_input");
    check_cuda(layer.multiply(), "multiply_maps");
  });
  const FoundBits found =
      layer.bits_of(0xa5, [&] { check_cuda(layer.in_one(/*input=*/true), "make_first_layer"); });
  EXPECT_EQ(differences(found.out, expected.out), 0);
  EXPECT_EQ(differences(found.choice, expected.choice), 0);
  EXPECT_EQ(differences(found.input, expected.input), 0);
  // In an attack's pass.
  const FoundBits alone =
      layer.bits_of(0xa5, [&] { check_cuda(layer.in_one(/*input=*/false), "make_first_layer"); });
  EXPECT_EQ(differences(alone.out, expected.out), 0);
  EXPECT_EQ(differences(alone.choice, expected.choice), 0);
  EXPECT_EQ(std::count(alone.input.begin(), alone.input.end(), 0xa5a5), std::ssize(alone.input));
  // The test could fail: there is something of all kinds.
  for (uint8_t choice = 0; choice <= kNoChoice; ++choice) {
    EXPECT_GT(std::count(expected.choice.begin(), expected.choice.end(), choice), 0) << int{choice};
  }
  if (GetParam().copies.clean > 0 && GetParam().batch > 3) {
    EXPECT_GT(std::count(expected.input.begin(), expected.input.end(), 0x8000), 0);
  }
  const bool broken = std::any_of(expected.out.begin(), expected.out.end(),
                                  [](uint16_t bits) { return std::isnan(from_bfloat16(bits)); });
  EXPECT_EQ(broken, GetParam().clients > 2);
}

// One copy a block; rows left over or none, also whole tiles of them; both kinds; more clients than
// a block's share has weights for.
INSTANTIATE_TEST_SUITE_P(
    Waves, WaveLayerCaseTest,
    testing::Values(Case{1, 1, {1, 0, 0}}, Case{1, 30, {0, 2, 0}}, Case{1, 13, {5, 0, 0}},
                    Case{2, 200, {0, 3, 0}}, Case{7, 9, {0, 3, 0}}, Case{7, 64, {0, 1, 0}},
                    Case{7, 43, {1, 2, 0}}, Case{31, 21, {0, 1, 2}}, Case{100, 30, {0, 2, 0}},
                    Case{100, 20, {1, 2, 0}}, Case{100, 20, {1, 0, 0}}, Case{132, 5, {0, 1, 0}},
                    Case{133, 5, {0, 1, 0}}, Case{300, 1, {0, 3, 0}}, Case{700, 4, {1, 0, 0}}));

// A wave that makes its input and multiplies it one after the other.
struct PassesApart : PairPasses {
  using PairPasses::PairPasses;

  void run_images(Precision precision, const WaveShape& shape, const InputMap& images,
                  const StackedWeights& weights, PassMode mode, Launches& launches) override {
    WavePasses::run_images(precision, shape, images, weights, mode, launches);
  }
};
struct PlanApart : PairNetwork {
  using PairNetwork::PairNetwork;

  std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                          bool gradients) const override {
    return std::make_unique<PassesApart>(*this, precision, clients, rows, gradients);
  }
};

RoundResult train(const DeviceNetwork& network, const LocalTask& task, const Weights& global) {
  constexpr int kClients = 7;
  const DeviceData data(task.data);
  Round round{task, global, cohort_of(kClients), 4};
  round.gather = Gather::kEach;
  Wave wave(task, network, data, Precision::kBfloat16, kClients);
  RoundResult result;
  wave.run({{round, 0, kClients, result}});
  return result;
}

struct Training {
  std::string name;
  Method method;
  Estimator estimator = Estimator::kStochastic;
  int64_t passes = 1;
};

class WaveLayerTrainingTest : public WaveLayerTest, public testing::WithParamInterface<Training> {};

// Two steps of attack and training.
TEST_P(WaveLayerTrainingTest, StepsTheSameWeights) {
  LocalTask task = task_for("alexnet", GetParam().method, GetParam().estimator);
  task.local.passes = GetParam().passes;
  if (task.method == Method::kCatRs || task.method == Method::kSun) add_tables(task);
  const Weights global = start(task.network);
  const RoundResult found = train(*device_, task, global);
  const RoundResult expected = train(PlanApart(task.network), task, global);
  ASSERT_EQ(found.each.size(), expected.each.size());
  ASSERT_FALSE(found.each.empty());
  for (size_t i = 0; i < found.each.size(); ++i) {
    const ClientWeights &a = found.each[i], &b = expected.each[i];
    ASSERT_EQ(a.client, b.client);
    EXPECT_EQ(a.loss, b.loss);
    int64_t different = 0, moved = 0;
    for (size_t t = 0; t < a.weights.size(); ++t) {
      for (int64_t j = 0; j < a.weights[t].count(); ++j) {
        different += a.weights[t].floats()[j] != b.weights[t].floats()[j];
        moved += a.weights[t].floats()[j] != global[t].floats()[j];
      }
    }
    EXPECT_EQ(different, 0) << "client " << a.client;
    EXPECT_GT(moved, 0) << "client " << a.client;
  }
  EXPECT_EQ(found.telemetry.perturbation, expected.telemetry.perturbation);
  EXPECT_EQ(found.telemetry.drop, expected.telemetry.drop);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, WaveLayerTrainingTest,
    testing::Values(Training{"Standard", Method::kStandard},
                    Training{"Gaussian", Method::kGaussian},
                    Training{"Stochastic", Method::kSmoothAdv},
                    Training{"TwoPoint", Method::kSmoothAdv, Estimator::kTwoPoint},
                    Training{"ThreePasses", Method::kSmoothAdv, Estimator::kStochastic, 3},
                    Training{"Stability", Method::kStability},
                    Training{"SmoothMix", Method::kSmoothMix}, Training{"CatRs", Method::kCatRs},
                    Training{"Sun", Method::kSun}),
    [](const auto& info) { return info.param.name; });

TEST_F(SlowWaveLayerTest, TakesLessTimeThanTheKernelsApart) {
  const WaveLayer layer(*device_, {100, 30, {0, 2, 0}});
  const double input = microseconds([&] { check_cuda(layer.make_input(), "make_input"); });
  const double product = microseconds([&] { check_cuda(layer.multiply(), "multiply_maps"); });
  const auto in_one = [&](bool with_input) {
    return microseconds([&] { check_cuda(layer.in_one(with_input), "make_first_layer"); });
  };
  const double attack = in_one(false), training = in_one(true);
  std::cout << fmt::format("us: apart {:.1f} + {:.1f}, in one {:.1f}, with the input map {:.1f}\n",
                           input, product, attack, training);
  EXPECT_LT(training, input + product);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(WaveLayerTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
