// Logits of residual networks on the GPU, by either evaluator, against sums in double.
#include <gtest/gtest.h>

#ifdef FEDSMOOTH_CUDA

#include <cmath>

#include "tests/engine/cuda/residual_evaluators.h"

namespace fedsmooth {
namespace {

// A value rounded to bfloat16 is off by at most u = 2^-8 of it, by 0.42 u on average (in the root
// of the mean of squares, for mantissas that are uniform in their logarithm). A convolution of
// rounded weights and a rounded map has sqrt(2) of that, sqrt(3) if a group norm follows, before
// which a map is rounded too; layers are independent of each other, and an error passes through
// those after it like the signal does. Twice that, for the worst row.
double tolerance(int layers, int roundings = 2) {
  return 2 * 0.42 * std::sqrt(static_cast<double>(roundings) * layers) / 256;
}

struct LogitsCase {
  std::string name;
  bool statistics;
  int layers;
  Evaluator evaluator = Evaluator::kHopper;

  int roundings() const { return name.ends_with("-gn") ? 3 : 2; }
};

class ResidualLogitsTest : public testing::TestWithParam<LogitsCase> {
 protected:
  void SetUp() override { skip_without(GetParam().evaluator); }
};

TEST_P(ResidualLogitsTest, AreThoseOfTheReference) {
  const LogitsCase& c = GetParam();
  const Model model = residual_model(c.name, c.statistics);
  const Array images = uniform({kRows, 3, 32, 32}, 2);
  const std::vector<double> expected = exact_logits(model, images);
  const std::vector<double> found =
      as_doubles(logits_of(classifier_of(c.evaluator, model, kRows), images));
  const double error = worst_row(found, expected);
  RecordProperty("error", std::to_string(error));
  EXPECT_LT(error, tolerance(c.layers, c.roundings()));
}

std::string case_name(const testing::TestParamInfo<LogitsCase>& info) {
  std::string name = info.param.name + (info.param.statistics ? "Normed" : "");
  if (info.param.evaluator == Evaluator::kRows) name += "Rows";
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    ResNets, ResidualLogitsTest,
    testing::Values(LogitsCase{"resnet8", false, 7}, LogitsCase{"resnet8-a", false, 7},
                    LogitsCase{"resnet8", true, 7}, LogitsCase{"resnet8-a", true, 7},
                    LogitsCase{"resnet20", false, 19}, LogitsCase{"resnet20-a", false, 19},
                    LogitsCase{"resnet20", true, 19}, LogitsCase{"resnet20-a", true, 19},
                    LogitsCase{"resnet110", true, 109},
                    LogitsCase{"resnet8", true, 7, Evaluator::kRows},
                    LogitsCase{"resnet20-a", true, 19, Evaluator::kRows},
                    LogitsCase{"resnet8-gn", true, 7, Evaluator::kRows},
                    LogitsCase{"resnet20-gn", false, 19, Evaluator::kRows},
                    LogitsCase{"resnet20-gn", true, 19, Evaluator::kRows}),
    case_name);

class ResidualRoundingTest : public ResidualLogitsTest {};

// Few sums fall on the other side of a boundary between two values of bfloat16, and there are few
// layers for that to grow in.
TEST_P(ResidualRoundingTest, IsWhereThePlanSays) {
  const LogitsCase& c = GetParam();
  const Model model = residual_model(c.name, c.statistics);
  const Array images = uniform({kRows, 3, 32, 32}, 3);
  const ResidualPlan plan = plan_residual(fold_batch_norm(model));
  const std::vector<double> expected = PlainPlan(plan, Rounding::kBfloat16).logits(images);
  const std::vector<double> found =
      as_doubles(logits_of(classifier_of(c.evaluator, model, kRows), images));
  EXPECT_LT(worst_row(found, expected), tolerance(c.layers) / 8);
}

INSTANTIATE_TEST_SUITE_P(ResNets, ResidualRoundingTest,
                         testing::Values(LogitsCase{"resnet8", false, 7},
                                         LogitsCase{"resnet8-a", false, 7},
                                         LogitsCase{"resnet8", true, 7},
                                         LogitsCase{"resnet8-a", true, 7}),
                         case_name);

}  // namespace
}  // namespace fedsmooth

#else
TEST(ResidualLogitsTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(ResidualRoundingTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
