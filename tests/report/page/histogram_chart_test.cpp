#include "fedsmooth/report/page/histogram_chart.h"

#include <gtest/gtest.h>

#include <numeric>

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

// The share of images in the bin of this name.
double share_in(const Plot& plot, const std::string& name) {
  const Series& series = plot.series.at(0);
  for (size_t i = 0; i < series.names.size(); ++i) {
    if (series.names[i] == name) return series.y[i];
  }
  ADD_FAILURE() << "no bin " << name;
  return -1;
}

TEST(HistogramChartTest, EveryImageIsInABinOrAtTheLeft) {
  const Chart chart = distribution_chart({example_run()});
  ASSERT_EQ(chart.plots.size(), 2U);
  const Plot& p = chart.plots[0];
  EXPECT_EQ(share_in(p, "wrong or abstained"), 40);
  EXPECT_EQ(share_in(p, "0.95 to 1"), 40);
  EXPECT_EQ(share_in(p, "0.6 to 0.65"), 20);
  // Radii up to 0.44 in bins of 0.02: 0.07 in that from 0.06, 0.41 in that from 0.4, 0.44 in its
  // own.
  const Plot& radii = chart.plots[1];
  EXPECT_EQ(share_in(radii, "wrong or abstained"), 40);
  EXPECT_EQ(share_in(radii, "0.06 to 0.08"), 20);
  EXPECT_EQ(share_in(radii, "0.4 to 0.42"), 20);
  EXPECT_EQ(share_in(radii, "0.44 to 0.46"), 20);
  for (const Plot& plot : chart.plots) {
    const std::vector<double>& y = plot.series[0].y;
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0), 100, 1e-9);
    EXPECT_EQ(plot.y.label, "share of images (%)");
  }
  EXPECT_EQ(radii.x.label, "ℓ₂ radius");
}

TEST(HistogramChartTest, BoundsOfAPublishedTableNeedSigma) {
  RunRecord published = example_run();
  for (CertificateRow& r : published.rows) r.published = true;
  EXPECT_EQ(distribution_chart({published}).plots.size(), 2U);
  for (CertificateRow& r : published.rows) r.sigma = 0;
  EXPECT_EQ(distribution_chart({published}).plots.size(), 1U);
  const Chart both = distribution_chart({published, example_run()});
  ASSERT_EQ(both.plots.size(), 2U);
  EXPECT_EQ(both.plots[0].series.size(), 1U);  // bounds of one, radii of both
  EXPECT_EQ(both.plots[0].series[0].entry, 1U);
  EXPECT_EQ(both.plots[1].series.size(), 2U);
}

TEST(HistogramChartTest, WithoutCertificatesThereIsNothingToDraw) {
  EXPECT_THROW(distribution_chart({{"bare"}}), Error);
}

TEST(HistogramChartTest, OutcomesAreStackedByTheirBound) {
  const Chart chart = confidence_chart(example_run().rows);
  ASSERT_EQ(chart.plots[0].series.size(), 3U);
  std::vector<double> totals;
  for (const Series& series : chart.plots[0].series) {
    totals.push_back(std::accumulate(series.y.begin(), series.y.end(), 0.0));
  }
  EXPECT_EQ(totals, (std::vector<double>{3, 1, 1}));  // correct, wrong, abstained
  const Series& wrong = chart.plots[0].series[1];
  EXPECT_EQ(wrong.names[19], "0.95 to 1");
  EXPECT_EQ(wrong.y[19], 1);
  EXPECT_NEAR(wrong.path[38].first, 0.95, 1e-9);
  EXPECT_EQ(wrong.path[38].second, 2);  // above the two correct ones
  EXPECT_EQ(chart.plots[0].y.label, "images");
}

TEST(HistogramChartTest, ClientsAreCountedInPercent) {
  const Chart chart = client_chart({{0, 0.5}, {1, 0.52}, {2, 1.0}});
  const Series& series = chart.plots[0].series[0];
  EXPECT_EQ(series.names[10], "50% to 55%");
  EXPECT_EQ(series.y[10], 2);
  EXPECT_EQ(series.y[19], 1);
  EXPECT_EQ(chart.plots[0].x.label, "certified accuracy at radius 0 (%)");
  EXPECT_EQ(chart.plots[0].x.to, 100);
  EXPECT_EQ(chart.plots[0].y.label, "clients");
}

}  // namespace
}  // namespace fedsmooth
