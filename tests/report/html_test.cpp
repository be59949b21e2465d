#include "fedsmooth/report/html.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

CertificateRow row(int64_t label, int64_t predict, double radius, double p_lower) {
  CertificateRow made;
  made.label = label;
  made.n0 = 100;
  made.alpha = 0.001;
  made.sigma = 0.25;
  made.seconds = 1.5;
  made.base = "cpu fp32";
  made.certificate.counts.n = 100'000;
  made.certificate.predict = predict;
  made.certificate.radius = radius;
  made.certificate.p_lower = p_lower;
  return made;
}

// Two correct, one wrong, one abstention.
ReportRun example_run() {
  return {
      "runs/example",
      {"cat", "dog"},
      {row(0, 0, 0.5, 0.97), row(0, 1, 3.0, 0.99), row(1, kAbstain, 0, 0.3), row(1, 1, 0.2, 0.8)},
      {{"commit", "abc123"}}};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

class HtmlTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot > /dev/null") != 0) GTEST_SKIP() << "gnuplot is missing";
  }
};

TEST_F(HtmlTest, PageLoadsNothingAndRunsNothing) {
  const std::string page = render_report({example_run()});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  for (const std::string outside :
       {"<script", "<link", "<img", "@import", "url(", " src=", "<iframe"}) {
    EXPECT_FALSE(contains(page, outside)) << outside;
  }
  // Namespaces of the SVG are names, not addresses that a browser visits.
  EXPECT_EQ(count_of(page, "http"), count_of(page, "=\"http://www.w3.org/"));
}

TEST_F(HtmlTest, NamesAreEscapedWhereverTheyStand) {
  const std::string attack = "<script>alert('x')</script>";
  ReportRun run = example_run();
  run.name = attack;
  run.class_names = {attack};
  run.provenance = {{attack, attack}};
  for (CertificateRow& r : run.rows) r.base = attack;
  const std::string page = render_report({run});
  EXPECT_FALSE(contains(page, "<script"));
  // Table, section title, class, provenance twice, base classifier.
  EXPECT_EQ(count_of(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), 6);
}

TEST_F(HtmlTest, StatesWhatIsCertified) {
  const std::string page = render_report({example_run()});
  EXPECT_TRUE(contains(page, "<em>smoothed</em> classifier"));
  EXPECT_TRUE(contains(page, "wrong with probability at most α"));
  EXPECT_TRUE(contains(page, "α is per image"));
}

TEST_F(HtmlTest, AccuracyTableHasTheNumbers) {
  const std::string page = render_report({example_run()});
  EXPECT_TRUE(contains(page, "<th>0.00</th><th>0.25</th><th>0.50</th></tr>"));
  EXPECT_TRUE(contains(page, "<th>certified %</th><td>50.0</td><td>25.0</td><td>25.0</td>"));
  // 2 of 4 and 1 of 4; the bound is below zero with so few images.
  EXPECT_TRUE(contains(page, "<td>6.8–93.2</td><td>0.6–80.6</td><td>0.6–80.6</td>"));
  EXPECT_TRUE(contains(page, "<th>at least, 99.9%</th><td>0.0</td><td>0.0</td><td>0.0</td>"));
}

TEST_F(HtmlTest, RunsShareOneTableOverAllTheirRadii) {
  ReportRun far = example_run();
  far.name = "runs/far";
  far.rows[0].certificate.radius = 1.0;
  const std::string page = render_report({example_run(), far});
  EXPECT_EQ(count_of(page, "<th>1.00</th>"), 1);
  EXPECT_TRUE(contains(page, "<td>25.0</td><td>25.0</td><td>0.0</td><td>0.0</td></tr>"));
  EXPECT_TRUE(contains(page, "<td>25.0</td><td>25.0</td><td>25.0</td><td>25.0</td></tr>"));
}

TEST_F(HtmlTest, RunSectionHasFactsClassesAndProvenance) {
  const std::string page = render_report({example_run()});
  EXPECT_TRUE(contains(page, "<dt>abstained</dt><dd>25.0% [0.6, 80.6]</dd>"));
  EXPECT_TRUE(contains(page, "<dt>wrong but certified</dt><dd>25.0% [0.6, 80.6]</dd>"));
  EXPECT_TRUE(contains(page, "<dt>average certified radius</dt><dd>0.175</dd>"));
  EXPECT_TRUE(contains(
      page, "<tr><th>cat</th><td>2</td><td>1</td><td>50.0</td><td>0.0</td><td>0.250</td>"));
  EXPECT_TRUE(contains(
      page, "<tr><th>dog</th><td>2</td><td>2</td><td>50.0</td><td>50.0</td><td>0.100</td>"));
  EXPECT_TRUE(contains(page, "<tr><th>commit</th><td>abc123</td></tr>"));
}

TEST_F(HtmlTest, ClassesWithoutNamesGoByNumber) {
  ReportRun run = example_run();
  run.class_names.clear();
  EXPECT_TRUE(contains(render_report({run}), "<tr><th>1</th><td>2</td>"));
}

TEST_F(HtmlTest, HistogramCountsEachImageOnce) {
  const std::string page = render_report({example_run()});
  EXPECT_EQ(count_of(page, "<title>1 correct</title>"), 2);
  EXPECT_EQ(count_of(page, "<title>1 wrong</title>"), 1);
  EXPECT_EQ(count_of(page, "<title>1 abstained</title>"), 1);
}

TEST_F(HtmlTest, WarnsAboutAConstantClassifierOnly) {
  EXPECT_FALSE(contains(render_report({example_run()}), "class=\"warning\""));
  ReportRun constant = example_run();
  for (CertificateRow& r : constant.rows) r.certificate.predict = 1;
  EXPECT_TRUE(contains(render_report({constant}), "It answers one class only"));
}

TEST_F(HtmlTest, RefusesNoRunsAndRunsWithoutCertificates) {
  EXPECT_THROW(render_report({}), Error);
  EXPECT_THROW(render_report({{"empty", {}, {}, {}}}), Error);
}

}  // namespace
}  // namespace fedsmooth
