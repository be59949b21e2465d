// The passes of training, by hand: batch norm over the batch, dropout, and what they leave alone.
#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/engine/reference/reference_passes.h"
#include "tests/arrays.h"

namespace fedsmooth {
namespace {

const Stream kStream = {make_key(2, Purpose::kDropout), 1, 4};

Array numbers(const Sizes& sizes, uint64_t key) {
  Array made(sizes);
  fill_normal({Key{key}}, 0, made.floats(), made.count());
  return made;
}

Network batch_norm_only(int64_t channels, int64_t side) {
  return {"norm", {channels, side, side}, {{Layer::Kind::kBatchNorm, "norm"}}};
}

// y = weight (x - mean) / sqrt(variance + 1e-5) + bias with the batch's own mean and variance over
// images and pixels; running statistics move a tenth of the way, by the unbiased variance.
TEST(ReferenceTrainingTest, BatchNormUsesTheBatchAndMovesTheRunningStatistics) {
  constexpr int64_t kImages = 5, kChannels = 3, kSide = 4, kArea = kSide * kSide;
  const auto passes = reference_passes(batch_norm_only(kChannels, kSide));
  const Array x = each(numbers({kImages, kChannels, kSide, kSide}, 7),
                       [](float value) { return 3 * value + 1; });
  const Array weight = numbers({kChannels}, 8), bias = numbers({kChannels}, 9);
  passes->load({weight, bias, Array::full({kChannels}, 0.5f), Array::full({kChannels}, 2.0f)});
  const Array found = passes->forward(x, kStream);
  const Weights weights = passes->weights();
  const float *in = x.floats(), *out = found.floats();
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
    const double scale = weight.floats()[c] / std::sqrt(squares / count + 1e-5);
    for (int64_t i = 0; i < kImages; ++i) {
      for (int64_t p = 0; p < kArea; ++p) {
        const double expected = scale * (in[at(i, p)] - mean) + bias.floats()[c];
        EXPECT_NEAR(out[at(i, p)], expected, 1e-5);
      }
    }
    EXPECT_NEAR(weights[2].floats()[c], 0.9 * 0.5 + 0.1 * mean, 1e-6);
    EXPECT_NEAR(weights[3].floats()[c], 0.9 * 2.0 + 0.1 * squares / (count - 1), 1e-5);
  }
}

TEST(ReferenceTrainingTest, AnAnswerUsesTheRunningStatisticsAndLeavesThem) {
  const auto passes = reference_passes(batch_norm_only(2, 3));
  const Weights before = {Array::full({2}, 3), Array::full({2}, 1), Array::full({2}, 0.5f),
                          Array::full({2}, 4)};
  passes->load(before);
  const Array x = numbers({4, 2, 3, 3}, 7), found = passes->forward(x, std::nullopt);
  for (int64_t i = 0; i < x.count(); ++i) {
    const double expected = 3 * (x.floats()[i] - 0.5) / std::sqrt(4 + 1e-5) + 1;
    EXPECT_NEAR(found.floats()[i], expected, 1e-6);
  }
  const Weights after = passes->weights();
  EXPECT_TRUE(same_bits(after[2], before[2]));
  EXPECT_TRUE(same_bits(after[3], before[3]));
}

Network dropout_twice(double rate) {
  Layer dropout{Layer::Kind::kDropout};
  dropout.drop_rate = rate;
  return {"dropout", {4, 10, 10}, {dropout, dropout}};
}

// A value survives both layers with probability (1 - rate)^2 and is scaled so that its mean stays.
TEST(ReferenceTrainingTest, DropoutKeepsTheMean) {
  const double rate = 0.3, kept = (1 - rate) * (1 - rate);
  const Array x = Array::full({50, 4, 10, 10}, 1);
  const Array found = reference_passes(dropout_twice(rate))->forward(x, kStream);
  int64_t alive = 0;
  for (const float value : values_of(found)) {
    if (value == 0) continue;
    ++alive;
    EXPECT_NEAR(value, 1 / kept, 1e-5);
  }
  const auto count = static_cast<double>(x.count());
  EXPECT_NEAR(static_cast<double>(alive), kept * count, 5 * std::sqrt(count * kept * (1 - kept)));
}

TEST(ReferenceTrainingTest, DropoutIsNamedByItsStreamAndGoneFromAnswers) {
  const auto passes = reference_passes(dropout_twice(0.5));
  const Array x = Array::full({3, 4, 10, 10}, 1), a = passes->forward(x, kStream);
  EXPECT_TRUE(same_bits(passes->forward(x, kStream), a));
  EXPECT_FALSE(same_bits(passes->forward(x, Stream{kStream.key, 2, 4}), a));
  EXPECT_TRUE(same_bits(passes->forward(x, std::nullopt), Array::full({3, 400}, 1)));
}

// After an answer nothing is dropped from a gradient, and it does not go through statistics.
TEST(ReferenceTrainingTest, AnAnswersGradientsAreItsOwn) {
  Layer dropout{Layer::Kind::kDropout};
  dropout.drop_rate = 0.5;
  const Network network{"both", {1, 2, 2}, {{Layer::Kind::kBatchNorm, "norm"}, dropout}};
  const auto passes = reference_passes(network);
  passes->load({Array::full({1}, 3), Array({1}), Array({1}), Array::full({1}, 4 - 1e-5f)});
  const Array x = numbers({2, 1, 2, 2}, 7), one = Array::full({2, 4}, 1);
  passes->forward(x, kStream);
  const Array trained = passes->backward_to_images(one);
  passes->load({Array::full({1}, 3), Array({1}), Array({1}), Array::full({1}, 4 - 1e-5f)});
  passes->forward(x, std::nullopt);
  EXPECT_LT(difference(passes->backward_to_images(one), Array::full({2, 1, 2, 2}, 1.5f)), 1e-6);
  EXPECT_GT(difference(trained, Array::full({2, 1, 2, 2}, 1.5f)), 0.1);
}

}  // namespace
}  // namespace fedsmooth
