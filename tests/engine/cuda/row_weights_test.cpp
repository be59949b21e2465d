// Weights of row maps: kernels in the working precision, folded norms, and a step of SGD.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/rows/row_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/cuda/row_values.h"

namespace fedsmooth {
namespace {

constexpr int kClients = 2;
constexpr double kEpsilon = 1e-5;

struct NodeCase {
  int kernel, in, out;
  bool fixed = false, has_norm = false, has_bias = false;
};

// One tile and several, tiles that are not full, kernels of more than nine taps.
const std::vector<NodeCase> kNodes = {
    {3, 16, 16, false, true},   {1, 32, 64, true},         {3, 96, 160, false, true, true},
    {7, 16, 64, false, true},   {1, 64, 128, true},        {4, 64, 96, false, false, true},
    {1, 512, 160, false, true}, {8, 32, 16, false, false},
};

class RowWeightsTest : public GpuTest, public testing::WithParamInterface<Precision> {
 protected:
  RowWeightsTest() {
    for (const NodeCase& node : kNodes) {
      KernelPlace place;
      place.taps = node.kernel * node.kernel;
      place.in_channels = node.in;
      place.out_channels = node.out;
      place.fixed = node.fixed;
      place.has_norm = node.has_norm;
      place.has_bias = node.has_bias;
      place.weight = working_;
      place.channel = channels_;
      working_ += int64_t{place.taps} * node.in * node.out;
      channels_ += node.out;
      places_.push_back(place);
    }
    size_ = working_;
    for (KernelPlace& place : places_) {
      for (int64_t* at :
           {&place.bias, &place.norm_bias, &place.scale, &place.mean, &place.variance}) {
        *at = size_;
        size_ += place.out_channels;
      }
    }
    vectors_ = random_values(kClients * size_, 1, false);
    for (double& v : vectors_) v = static_cast<float>(v + 0.75);  // variances are positive
  }

  bool half() const { return GetParam() == Precision::kBfloat16; }
  double at(int client, int64_t place) const { return vectors_[client * size_ + place]; }

  // Returns the factor by which a norm multiplies channel k.
  double factor(const KernelPlace& place, int client, int k) const {
    return at(client, place.scale + k) / std::sqrt(at(client, place.variance + k) + kEpsilon);
  }

  // Returns a weight as it is prepared.
  double weight(const KernelPlace& place, int client, bool fold, int tap, int k, int c) const {
    if (place.fixed) return k == c ? 1 : 0;
    const int64_t offset = (int64_t{tap} * place.out_channels + k) * place.in_channels + c;
    const bool folds = fold && place.has_norm;
    return at(client, place.weight + offset) * (folds ? factor(place, client, k) : 1);
  }

  double shift(const KernelPlace& place, int client, bool fold, int k) const {
    const double bias = place.has_bias ? at(client, place.bias + k) : 0;
    if (!fold || !place.has_norm) return bias;
    return at(client, place.norm_bias + k) +
           (bias - at(client, place.mean + k)) * factor(place, client, k);
  }

  std::vector<KernelPlace> places_;
  int64_t working_ = 0, size_ = 0;
  int channels_ = 0;
  Doubles vectors_;
};

TEST_P(RowWeightsTest, PreparesKernels) {
  const DeviceArray<KernelPlace> places(places_);
  const DeviceValues vectors(vectors_, NumberType::kFloat);
  const NumberType type = type_of(GetParam());
  for (const bool fold : {false, true}) {
    const DeviceValues kernels(Doubles(kClients * working_, NAN), type),
        turned(Doubles(kClients * working_, NAN), type),
        shifts(Doubles(kClients * channels_, NAN), NumberType::kFloat);
    WorkingWeights w;
    w.clients = kClients;
    w.nodes = static_cast<int>(places_.size());
    w.channels = channels_;
    for (const KernelPlace& place : places_) w.blocks = std::max(w.blocks, preparing_blocks(place));
    w.places = places.data();
    w.vectors = vectors.floats();
    w.size = size_;
    w.working = working_;
    w.fold = fold;
    w.kernels = kernels.data();
    w.turned = turned.data();
    w.shift = shifts.floats();
    check_cuda(prepare_weights(GetParam(), w, nullptr), "prepare_weights");
    const Doubles plain = kernels.read(), back = turned.read(), shift_of = shifts.read();
    const double step = half() ? kHalfStep : 2 * kFullStep;
    for (int client = 0; client < kClients; ++client) {
      for (const KernelPlace& p : places_) {
        for (int64_t i = 0; i < int64_t{p.taps} * p.out_channels * p.in_channels; ++i) {
          const int c = static_cast<int>(i % p.in_channels);
          const int k = static_cast<int>(i / p.in_channels % p.out_channels);
          const int tap = static_cast<int>(i / p.in_channels / p.out_channels);
          const double value = weight(p, client, fold, tap, k, c);
          const int64_t kernel = client * working_ + p.weight;
          const int64_t in_turned = ((p.taps - 1 - tap) * p.in_channels + c) * p.out_channels + k;
          ASSERT_NEAR(plain[kernel + i], value, step * std::abs(value)) << p.taps << " taps, " << i;
          ASSERT_EQ(back[kernel + in_turned], plain[kernel + i]) << p.taps << " taps, " << i;
        }
        for (int k = 0; k < p.out_channels; ++k) {
          ASSERT_NEAR(shift_of[client * channels_ + p.channel + k], shift(p, client, fold, k),
                      4 * kFullStep)
              << p.taps << " taps, " << k;
        }
      }
    }
  }
}

// Kernels whose gradients come in pieces, those that are not trained, and all other weights.
TEST_P(RowWeightsTest, StepsAllTrainedWeights) {
  constexpr int64_t kKernels = 100, kBegin = 192, kTrained = 600, kSize = 640;
  constexpr int kPieces = 3;
  const Doubles weights = random_values(kClients * kSize, 1, false),
                velocity = random_values(kClients * kSize, 2, false),
                global = random_values(kClients * kSize, 3, false),
                gradients = random_values(kClients * kSize, 4, false),
                pieces = random_values(kPieces * kClients * kKernels, 5, false);
  std::vector<ClientSettings> settings(kClients);
  for (int client = 0; client < kClients; ++client) {
    ClientSettings& c = settings[client];
    c.learning_rate = 0.1f * static_cast<float>(1 + client);
    c.momentum = 0.9f;
    c.weight_decay = 0.01f;
    c.mu = 0.5f;
  }
  const DeviceArray<ClientSettings> of_clients(settings);
  const NumberType type = NumberType::kFloat;
  const DeviceValues w(weights, type), v(velocity, type), from(global, type), of(gradients, type),
      of_kernels(pieces, type);
  RowStep step;
  step.clients = kClients;
  step.pieces = kPieces;
  step.size = kSize;
  step.kernels = kKernels;
  step.begin = kBegin;
  step.trained = kTrained;
  step.kernel_gradients = of_kernels.floats();
  step.gradients = of.floats();
  step.weights = w.floats();
  step.velocity = v.floats();
  step.global = from.floats();
  step.settings = of_clients.data();
  check_cuda(step_weights(step, nullptr), "step_weights");
  const Doubles after = w.read(), speed = v.read();
  for (int64_t at = 0; at < std::ssize(weights); ++at) {
    const int64_t client = at / kSize, i = at % kSize;
    if ((i >= kKernels && i < kBegin) || i >= kTrained) {
      ASSERT_EQ(after[at], weights[at]) << at;
      ASSERT_EQ(speed[at], velocity[at]) << at;
      continue;
    }
    double gradient = i < kKernels ? 0 : gradients[at];
    for (int piece = 0; i < kKernels && piece < kPieces; ++piece) {
      gradient += pieces[(piece * kClients + client) * kKernels + i];
    }
    const ClientSettings& c = settings[client];
    gradient += c.mu * (weights[at] - global[at]) + c.weight_decay * weights[at];
    const double expected = c.momentum * velocity[at] + gradient;
    ASSERT_NEAR(speed[at], expected, 16 * kFullStep) << at;
    ASSERT_NEAR(after[at], weights[at] - c.learning_rate * expected, 16 * kFullStep) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, RowWeightsTest,
                         testing::Values(Precision::kBfloat16, Precision::kFloat32));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(RowWeightsTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
