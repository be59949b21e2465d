#include "fedsmooth/report/figures/distribution_figure.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

CertificateRow row(int64_t predict, double radius, double p_lower) {
  CertificateRow made;
  made.noise = &kFloatNoise;
  made.sigma = 0.25;
  made.certificate.counts.n = 1000;
  made.certificate.predict = predict;
  made.certificate.radius = radius;
  made.certificate.p_lower = p_lower;
  return made;
}

// Of class 0: two in the bin 0.95 to 1, one in 0.6 to 0.65; one wrong, one abstention.
RunRecord example_run(const std::string& name = "example") {
  return {name,
          {},
          {row(0, 0.44, 0.96), row(0, 0.41, 0.95), row(0, 0.07, 0.61), row(1, 0.9, 0.99),
           row(kAbstain, 0, 0.3)}};
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(DistributionFigureTest, EveryImageIsInABinOrAtTheLeft) {
  const std::string script = distribution_figure({example_run()}).script;
  // The bins of p begin at 0.5, 0.05 wide; wrong and abstained stand from 0.35 to 0.4: 40%.
  EXPECT_EQ(count_of(script, "0.35 0\n0.35 40\n0.4 40\n0.4 0\n"), 1U) << script;
  EXPECT_EQ(count_of(script, "\n0.95 40\n1 40\n1 0\n"), 1U) << script;
  EXPECT_EQ(count_of(script, "\n0.6 20\n0.65 20\n"), 1U) << script;
  // Radii up to 0.44 in bins of 0.02: 0.07 in that from 0.06, 0.41 in that from 0.4, 0.44 in its
  // own.
  EXPECT_EQ(count_of(script, "-0.08 0\n-0.08 40\n-0.06 40\n-0.06 0\n"), 1U) << script;
  EXPECT_EQ(count_of(script, "\n0.06 20\n0.08 20\n"), 1U) << script;
  EXPECT_EQ(count_of(script, "\n0.44 20\n0.46 20\n"), 1U) << script;
}

TEST(DistributionFigureTest, BoundsOfAPublishedTableNeedSigma) {
  RunRecord published = example_run();
  for (CertificateRow& r : published.rows) r.published = true;
  EXPECT_EQ(count_of(distribution_figure({published}).script, "lower bound"), 1U);
  for (CertificateRow& r : published.rows) r.sigma = 0;
  EXPECT_EQ(count_of(distribution_figure({published}).script, "lower bound"), 0U);
  const std::string both = distribution_figure({published, example_run()}).script;
  EXPECT_EQ(count_of(both, "lower bound"), 1U);
  EXPECT_EQ(count_of(both, " << END\n"), 3U);  // bounds of one, radii of both
}

TEST(DistributionFigureTest, WithoutCertificatesThereIsNothingToDraw) {
  EXPECT_THROW(distribution_figure({{"bare"}}), Error);
}

TEST(DistributionFigureTest, NamesStayTextAndTheNormIsNamed) {
  if (std::system("command -v gnuplot > /dev/null") != 0) GTEST_SKIP() << "gnuplot is missing";
  RunRecord run = example_run("a'b\"<c>\n`touch /tmp/x` 10%");
  run.norm = Norm::kL1;
  const Figure figure = distribution_figure({run});
  EXPECT_EQ(count_of(figure.script, "`"), 0U);
  const std::string svg = figure_svg(figure);
  EXPECT_EQ(count_of(svg, "a'b\"&lt;c> `touch /tmp/x` 10%</text>"), 1U) << svg;
  EXPECT_EQ(count_of(svg, "ℓ₁ radius</text>"), 1U);
}

}  // namespace
}  // namespace fedsmooth
