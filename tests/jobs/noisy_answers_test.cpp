#include "fedsmooth/jobs/training/noisy_answers.h"

#include <gtest/gtest.h>

#include "fedsmooth/data/sources.h"
#include "tests/folder.h"
#include "tests/layers.h"
#include "tests/nearest_mean.h"

namespace fedsmooth {
namespace {

// Logits are the biases alone.
Model constant_model(const std::vector<float>& biases) {
  const Network network = {"c", {3, 32, 32}, {linear(10, true)}};
  Model model = {network, {}, 0.25, {}};
  for (const Parameter& p : parameters(network)) model.weights.push_back(Array::full(p.shape, 0));
  std::copy(biases.begin(), biases.end(), model.weights.back().floats());
  return model;
}

class NoisyAnswersTest : public ::testing::Test {
 protected:
  const jobs::NoisyVotes votes_ = {"cpu", 1, 0};
};

TEST_F(NoisyAnswersTest, FindsTheOnlyAnswer) {
  const Dataset data = make_shapes(Split::kTest, 150, 0);
  EXPECT_EQ(jobs::only_answer(constant_model({0, 0, 0, 1, 0, 0, 0, 0, 0, 0}), 0.25, data, votes_),
            3);
}

TEST_F(NoisyAnswersTest, FindsNoneInANetworkThatTellsImagesApart) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("collapse_" + std::to_string(::getpid()) + ".safetensors");
  write_nearest_mean(file);
  const Dataset data = make_shapes(Split::kTest, 150, 0);
  EXPECT_EQ(jobs::only_answer(load_model(file), 0.25, data, votes_), std::nullopt);
  std::filesystem::remove(file);
}

TEST_F(NoisyAnswersTest, CountsRightAnswers) {
  Dataset data = make_shapes(Split::kTest, 20, 0);
  data.labels.assign(20, 3);
  data.labels[7] = 4;
  EXPECT_EQ(jobs::noisy_accuracy(constant_model({0, 0, 0, 1, 0, 0, 0, 0, 0, 0}), data, votes_),
            0.95);
}

// One answer for one label is right.
TEST_F(NoisyAnswersTest, NeedsSeveralLabels) {
  Dataset data = make_shapes(Split::kTest, 20, 0);
  data.labels.assign(20, 3);
  EXPECT_EQ(jobs::only_answer(constant_model({0, 0, 0, 1, 0, 0, 0, 0, 0, 0}), 0.25, data, votes_),
            std::nullopt);
}

}  // namespace
}  // namespace fedsmooth
