#include "fedsmooth/report/page/html.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/report/page/picture.h"

namespace fedsmooth {
namespace {

CertificateRow row(int64_t label, int64_t predict, double radius, double p_lower) {
  CertificateRow made;
  made.noise = &kFloatNoise;
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
RunRecord example_run() {
  return {.name = "runs/example",
          .class_names = {"cat", "dog"},
          .rows = {row(0, 0, 0.5, 0.97), row(0, 1, 3.0, 0.99), row(1, kAbstain, 0, 0.3),
                   row(1, 1, 0.2, 0.8)},
          .provenance = {{"commit", "abc123"}}};
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

TEST_F(HtmlTest, PageLoadsNothingAndRunsItsOwnScriptAlone) {
  RunRecord run = example_run();
  run.images[0] = Array({3, 4, 4}, Array::Type::kByte);
  const std::string page = render_report({run});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  for (const std::string outside : {"<link", "@import", "url(", "<iframe", "fetch(", "import("}) {
    EXPECT_FALSE(contains(page, outside)) << outside;
  }
  EXPECT_GT(count_of(page, "<img src=\"data:image/png;base64,"), 0U);
  EXPECT_EQ(count_of(page, " src="), count_of(page, "<img src=\"data:image/png;base64,"));
  EXPECT_EQ(count_of(page, "<script"), 1);
  // Namespaces of the SVG are names, not addresses that a browser visits.
  EXPECT_EQ(count_of(page, "://"), count_of(page, "=\"http://www.w3.org/"));
}

// A browser refuses a script whose digest the policy does not state.
TEST_F(HtmlTest, ThePolicyStatesTheScriptsDigest) {
  const std::string page = render_report({example_run()});
  const size_t begin = page.find("<script>") + 8;
  const std::string digits = sha256(page.substr(begin, page.find("</script>") - begin));
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  EXPECT_TRUE(contains(page,
                       "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
                       "script-src 'sha256-" +
                           base64(bytes) + "'\""));
}

TEST_F(HtmlTest, NamesAreEscapedWhereverTheyStand) {
  const std::string attack = "<script>alert('x')</script>";
  RunRecord run = example_run();
  run.name = attack;
  run.class_names = {attack};
  run.provenance = {{attack, attack}};
  for (CertificateRow& r : run.rows) r.base = attack;
  const std::string page = render_report({run});
  EXPECT_EQ(count_of(page, "<script"), 1);  // ours
  // Legend, table, section title, class, provenance twice, base classifier.
  EXPECT_EQ(count_of(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), 7);
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
  RunRecord far = example_run();
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
  RunRecord run = example_run();
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
  RunRecord constant = example_run();
  for (CertificateRow& r : constant.rows) r.certificate.predict = 1;
  EXPECT_TRUE(contains(render_report({constant}), "It answers one class only"));
}

// Ten rounds with an attack, clients of one class each, attacks that break the second image.
RunRecord full_run() {
  RunRecord run = example_run();
  for (size_t i = 0; i < run.rows.size(); ++i) run.rows[i].index = static_cast<int64_t>(i);
  for (int64_t i = 1; i <= 10; ++i) run.rounds.push_back({i, 2.0, 0.4, 0.9, 1, 0.2, 0.1, 0, 1.5});
  run.clients = {{3, {10, 0}}, {8, {4, 12}}};
  run.attacks = {{0, 0, 0.25, 0, 0.25}, {3, 1, 0.25, 1, 0.25}, {3, 1, 0.5, 0, 0.5}};
  return run;
}

TEST_F(HtmlTest, PageHasWhatTheRunHas) {
  const std::string full = render_report({full_run()});
  const std::string bare = render_report({example_run()});
  for (const std::string part :
       {"<h2>Training</h2>", "The attack in training", "By client", "<tr><th>attacked %</th>",
        "<dt>worst client</dt>", "<dt>under attack</dt>", "<dt>rounds</dt>"}) {
    EXPECT_TRUE(contains(full, part)) << part;
    EXPECT_FALSE(contains(bare, part)) << part;
  }
  RunRecord unattacked = full_run();
  for (RoundRow& r : unattacked.rounds) r.perturbation_mean = r.perturbation_p95 = 0;
  EXPECT_FALSE(contains(render_report({unattacked}), "The attack in training"));
}

TEST_F(HtmlTest, AttackedAccuracyIsKnownFromTheFirstEpsilonOn) {
  EXPECT_TRUE(contains(render_report({full_run()}),
                       "<th>attacked %</th><td></td><td>100.0</td><td>50.0</td></tr>"));
}

TEST_F(HtmlTest, ClientsHaveATableAndAHistogram) {
  // Both classes are half correct; only class 0 reaches 0.25 and 0.5.
  const std::string page = render_report({full_run()});
  EXPECT_TRUE(contains(page, "<th>mean %</th><td>50.0</td><td>31.2</td><td>31.2</td>")) << page;
  EXPECT_TRUE(contains(page, "<th>median %</th><td>50.0</td><td>31.2</td><td>31.2</td>"));
  EXPECT_TRUE(contains(page, "<th>worst %</th><td>50.0</td><td>12.5</td><td>12.5</td>"));
  EXPECT_TRUE(contains(page, "<th>worst client</th><td>3</td><td>8</td><td>8</td>"));
  EXPECT_TRUE(contains(page, "<th>95% interval</th><td>"));
  EXPECT_TRUE(contains(page, "<dt>worst client</dt><dd>50.0% ["));
  EXPECT_TRUE(contains(page, "] (client 3, of 2 looked at)</dd>"));
  EXPECT_EQ(count_of(page, "<title>2 clients</title>"), 1);
}

TEST_F(HtmlTest, ClassesThatClientsHoldButNobodyCertifiedAreNamed) {
  RunRecord run = full_run();
  EXPECT_FALSE(contains(render_report({run}), "Left out"));
  run.class_names = {"cat", "dog", "<newt>"};
  run.clients.push_back({9, {1, 1, 98}});
  EXPECT_TRUE(contains(render_report({run}), "no image of theirs is certified: &lt;newt&gt;."));
}

TEST_F(HtmlTest, ARunThatIsNotCertifiedShowsItsTraining) {
  RunRecord run = full_run();
  run.rows.clear();
  run.name = "<b>half done";
  const std::string alone = render_report({run});
  EXPECT_TRUE(contains(alone, "Not certified yet"));
  EXPECT_TRUE(contains(alone, "<h2>Training</h2>"));
  EXPECT_TRUE(contains(alone, "<h1>Training history</h1>"));
  EXPECT_FALSE(contains(alone, "Certified accuracy"));
  EXPECT_FALSE(contains(alone, "<b>"));
  const std::string both = render_report({run, example_run()});
  EXPECT_EQ(count_of(both, "<tr class=\"run\">"), 1);
  EXPECT_TRUE(contains(both, "<h1>Certified robustness</h1>"));
}

TEST_F(HtmlTest, RefusesNoRunsAndRunsWithoutCertificates) {
  EXPECT_THROW(render_report({}), Error);
  EXPECT_THROW(render_report({{"empty", {}, {}, {}}}), Error);
}

}  // namespace
}  // namespace fedsmooth
