// The passes of training, by hand: batch norm over the batch, dropout, and what they leave alone.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/model/network.h"

namespace fedsmooth {
namespace {

const Stream kStream = {make_key(2, Purpose::kDropout), 1, 4};

Tensor numbers(std::vector<int64_t> shape, uint64_t key) {
  Tensor made = at::zeros(shape);
  fill_normal({Key{key}}, 0, made.data_ptr<float>(), made.numel());
  return made;
}

Network batch_norm_only(int64_t channels, int64_t side) {
  return {"norm", {channels, side, side}, {{Layer::Kind::kBatchNorm, "norm"}}};
}

// y = weight (x - mean) / sqrt(variance + 1e-5) + bias with the batch's own mean and variance over
// images and pixels; running statistics move a tenth of the way, by the unbiased variance.
TEST(ForwardTrainingTest, BatchNormUsesTheBatchAndMovesTheRunningStatistics) {
  constexpr int64_t kImages = 5, kChannels = 3, kSide = 4, kArea = kSide * kSide;
  const Network network = batch_norm_only(kChannels, kSide);
  const Tensor x = numbers({kImages, kChannels, kSide, kSide}, 7) * 3 + 1;
  const Tensor weight = numbers({kChannels}, 8), bias = numbers({kChannels}, 9);
  const Weights weights = {weight, bias, at::full({kChannels}, 0.5), at::full({kChannels}, 2.0)};
  const Tensor found = forward_training(network, weights, x, kStream);
  const float* in = x.data_ptr<float>();
  const float* out = found.data_ptr<float>();
  for (int64_t c = 0; c < kChannels; ++c) {
    const auto at = [&](int64_t i, int64_t p) { return (i * kChannels + c) * kArea + p; };
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < kImages; ++i) {
      for (int64_t p = 0; p < kArea; ++p) sum += in[at(i, p)];
    }
    const double count = kImages * kArea, mean = sum / count;
    for (int64_t i = 0; i < kImages; ++i) {
      for (int64_t p = 0; p < kArea; ++p) squares += std::pow(in[at(i, p)] - mean, 2);
    }
    const double scale = weight.data_ptr<float>()[c] / std::sqrt(squares / count + 1e-5);
    for (int64_t i = 0; i < kImages; ++i) {
      for (int64_t p = 0; p < kArea; ++p) {
        const double expected = scale * (in[at(i, p)] - mean) + bias.data_ptr<float>()[c];
        EXPECT_NEAR(out[at(i, p)], expected, 1e-5);
      }
    }
    EXPECT_NEAR(weights[2].data_ptr<float>()[c], 0.9 * 0.5 + 0.1 * mean, 1e-6);
    EXPECT_NEAR(weights[3].data_ptr<float>()[c], 0.9 * 2.0 + 0.1 * squares / (count - 1), 1e-5);
  }
}

TEST(ForwardTrainingTest, AnAnswerUsesTheRunningStatisticsAndLeavesThem) {
  const Network network = batch_norm_only(2, 3);
  const Weights weights = {at::full({2}, 3.0), at::full({2}, 1.0), at::full({2}, 0.5),
                           at::full({2}, 4.0)};
  const Tensor x = numbers({4, 2, 3, 3}, 7), found = forward(network, weights, x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double expected = 3 * (x.data_ptr<float>()[i] - 0.5) / std::sqrt(4 + 1e-5) + 1;
    EXPECT_NEAR(found.data_ptr<float>()[i], expected, 1e-6);
  }
  EXPECT_TRUE(at::equal(weights[2], at::full({2}, 0.5)));
  EXPECT_TRUE(at::equal(weights[3], at::full({2}, 4.0)));
}

Network dropout_twice(double rate) {
  Layer dropout{Layer::Kind::kDropout};
  dropout.drop_rate = rate;
  return {"dropout", {4, 10, 10}, {dropout, dropout}};
}

// A value survives both layers with probability (1 - rate)^2 and is scaled so that its mean stays.
TEST(ForwardTrainingTest, DropoutKeepsTheMean) {
  const double rate = 0.3, kept = (1 - rate) * (1 - rate);
  const Tensor x = at::ones({50, 4, 10, 10});
  const Tensor found = forward_training(dropout_twice(rate), {}, x, kStream);
  int64_t alive = 0;
  for (int64_t i = 0; i < found.numel(); ++i) {
    const float value = found.data_ptr<float>()[i];
    if (value == 0) continue;
    ++alive;
    EXPECT_NEAR(value, 1 / kept, 1e-5);
  }
  const auto count = static_cast<double>(x.numel());
  EXPECT_NEAR(static_cast<double>(alive), kept * count, 5 * std::sqrt(count * kept * (1 - kept)));
}

TEST(ForwardTrainingTest, DropoutIsNamedByItsStreamAndGoneFromAnswers) {
  const Network network = dropout_twice(0.5);
  const Tensor x = at::ones({3, 4, 10, 10});
  const Tensor a = forward_training(network, {}, x, kStream);
  EXPECT_TRUE(at::equal(forward_training(network, {}, x, kStream), a));
  EXPECT_FALSE(at::equal(forward_training(network, {}, x, {kStream.key, 2, 4}), a));
  EXPECT_TRUE(at::equal(forward(network, {}, x), at::ones({3, 400})));
}

}  // namespace
}  // namespace fedsmooth
