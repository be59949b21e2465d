#include "fedsmooth/report/page/html.h"

#include <gtest/gtest.h>

#include <set>

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

// Ten rounds with an attack, clients of one class each, attacks that break the second image.
RunRecord full_run() {
  RunRecord run = example_run();
  for (size_t i = 0; i < run.rows.size(); ++i) run.rows[i].index = static_cast<int64_t>(i);
  for (int64_t i = 1; i <= 10; ++i) run.rounds.push_back({i, 2.0, 0.4, 0.9, 1, 0.2, 0.1, 0, 1.5});
  run.clients = {{3, {10, 0}}, {8, {4, 12}}};
  run.attacks = {{0, 0, 0.25, 0, 0.25}, {3, 1, 0.25, 1, 0.25}, {3, 1, 0.5, 0, 0.5}};
  return run;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(HtmlTest, PageLoadsNothingAndRunsItsOwnScriptAlone) {
  RunRecord run = example_run();
  run.images[0] = Array({3, 4, 4}, Array::Type::kByte);
  const std::string page = render_report({run});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  for (const std::string outside : {"<link", "@import", "url(", "<iframe", "fetch(", "import("}) {
    EXPECT_FALSE(contains(page, outside)) << outside;
  }
  EXPECT_GT(count_of(page, "<img src=\"data:image/png;base64,"), 0U);
  EXPECT_EQ(count_of(page, " src="), count_of(page, "<img src=\"data:image/png;base64,"));
  EXPECT_EQ(count_of(page, "<script>"), 1);
  EXPECT_EQ(count_of(page, "<script"), 1 + count_of(page, "<script type=\"application/json\">"));
  // Namespaces of the SVG are names, not addresses that a browser visits.
  EXPECT_EQ(count_of(page, "://"), count_of(page, "\"http://www.w3.org/"));
}

// A browser refuses a script whose digest the policy does not state.
TEST(HtmlTest, ThePolicyStatesTheScriptsDigest) {
  const std::string page = render_report({example_run()});
  const size_t begin = page.find("<script>") + 8;
  const std::string digits = sha256(page.substr(begin, page.find("</script>", begin) - begin));
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  EXPECT_TRUE(contains(page,
                       "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
                       "script-src 'sha256-" +
                           base64(bytes) + "'\""));
}

TEST(HtmlTest, NamesAreEscapedWhereverTheyStand) {
  const std::string attack = "<script>alert('x')</script>";
  RunRecord run = example_run();
  run.name = attack;
  run.class_names = {attack};
  run.provenance = {{attack, attack}};
  for (CertificateRow& r : run.rows) r.base = attack;
  const std::string page = render_report({run}, {attack});
  EXPECT_EQ(count_of(page, "<script>"), 1);  // ours
  EXPECT_FALSE(contains(page, "<script>alert"));
  // Title and tab, verdict, contents, legends of two charts, table, run, class, provenance twice,
  // base classifier.
  EXPECT_EQ(count_of(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), 12);
  // In the JSON of two charts nothing can end the element.
  EXPECT_EQ(count_of(page, "\\u003cscript>alert('x')\\u003c/script>"), 2);
}

// All that the contents, the tables and the notes link to is there, once.
TEST(HtmlTest, EveryLinkLeadsSomewhere) {
  std::vector<RunRecord> runs(2, full_run());
  runs[1].label = "Runs";  // like a section
  ReportText text;
  text.figures = {{"f", "A figure", "Caption.", {{"p", {curve_of(runs[0], "a")}}}, {{0}}}};
  std::vector<RunRecord> many(8, example_run());
  for (const std::string& page : {render_report(runs), render_report({runs[0]}),
                                  render_report(runs, text), render_report(many)}) {
    std::multiset<std::string> ids;
    for (size_t at = 0; (at = page.find(" id=\"", at)) != std::string::npos;) {
      at += 5;
      ids.insert(page.substr(at, page.find('"', at) - at));
    }
    for (const std::string& id : ids) EXPECT_EQ(ids.count(id), 1U) << id;
    size_t links = 0;
    for (size_t at = 0; (at = page.find("href=\"#", at)) != std::string::npos; ++links) {
      at += 7;
      const std::string id = page.substr(at, page.find('"', at) - at);
      EXPECT_EQ(ids.count(id), 1U) << id;
    }
    EXPECT_GT(links, 3U);
  }
}

TEST(HtmlTest, TheVerdictStandsFirst) {
  const std::string page = render_report({example_run()});
  EXPECT_TRUE(contains(page, "<title>runs/example</title>"));
  EXPECT_TRUE(contains(page,
                       "<h1>runs/example</h1>\n<p class=\"verdict\">runs/example certifies 25% of "
                       "the images within ℓ₂ radius 0.25.</p>\n<p class=\"terms\">4 images, σ = "
                       "0.25, n = 100,000, α = 0.001.</p>\n"));
  EXPECT_TRUE(
      contains(render_report({example_run()}, {"My <title>"}), "<h1>My &lt;title&gt;</h1>"));
  // Definitions are folded.
  EXPECT_LT(page.find("<p class=\"verdict\">"), page.find("<details>"));
  EXPECT_LT(page.find("<details>"), page.find("<em>smoothed</em>"));
}

TEST(HtmlTest, UnequalTrainingIsNoted) {
  RunRecord longer = full_run();
  longer.name = "longer";
  longer.rounds.push_back({11, 2.0});
  EXPECT_TRUE(contains(render_report({full_run(), longer}),
                       "not trained equally long: runs/example for 10 rounds and longer for 11"));
  EXPECT_FALSE(contains(render_report({full_run(), full_run()}), "equally long"));
}

TEST(HtmlTest, FiguresReplaceTheChartsOfAllRuns) {
  const std::vector<RunRecord> runs = {full_run(), full_run()};
  ReportText text;
  text.figures = {{"figure-1",
                   "",
                   "Both <modes>.",
                   {{"left", {curve_of(runs[0], "a")}}, {"right", {curve_of(runs[1], "a")}}},
                   {{0}, {1}}},
                  {"figure-2", "Nothing", "", {{"none", {}}}, {{}}}};
  const std::string page = render_report(runs, text);
  EXPECT_TRUE(contains(page, "<h3 id=\"figure-1\">figure-1</h3>\n<figcaption>Both &lt;modes&gt;."));
  EXPECT_TRUE(contains(page, "\"name\":\"figure-1\""));
  EXPECT_TRUE(contains(page, ">a, left</a>"));
  EXPECT_TRUE(contains(page, ">a, right</a>"));
  EXPECT_TRUE(contains(page, "Nothing is left out: none of its runs is certified."));
  EXPECT_FALSE(contains(page, "\"name\":\"certified-accuracy\""));
  EXPECT_FALSE(contains(page, "\"name\":\"training\""));
}

TEST(HtmlTest, StatesWhatIsCertified) {
  const std::string page = render_report({example_run()});
  EXPECT_TRUE(contains(page, "<em>smoothed</em> classifier"));
  EXPECT_TRUE(contains(page, "wrong with probability at most α"));
  EXPECT_TRUE(contains(page, "α is per image"));
}

TEST(HtmlTest, RunSectionHasFactsClassesAndProvenance) {
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

TEST(HtmlTest, ClassesWithoutNamesGoByNumber) {
  RunRecord run = example_run();
  run.class_names.clear();
  EXPECT_TRUE(contains(render_report({run}), "<tr><th>1</th><td>2</td>"));
}

TEST(HtmlTest, WarnsAboutAConstantClassifierOnly) {
  EXPECT_FALSE(contains(render_report({example_run()}), "class=\"warning\""));
  RunRecord constant = example_run();
  for (CertificateRow& r : constant.rows) r.certificate.predict = 1;
  EXPECT_TRUE(contains(render_report({constant}), "It answers one class only"));
  EXPECT_TRUE(contains(render_report({example_run(), constant}),
                       "Warnings: <a href=\"#run-runs-example-2\">runs/example</a>.</p>"));
}

TEST(HtmlTest, PageHasWhatTheRunHas) {
  const std::string full = render_report({full_run()});
  const std::string bare = render_report({example_run()});
  for (const std::string part : {"<h2>Training</h2>", "The attack in training", "By client",
                                 "<th scope=\"col\">attacked %</th>", "<dt>worst client</dt>",
                                 "<dt>under attack</dt>", "<dt>rounds</dt>"}) {
    EXPECT_TRUE(contains(full, part)) << part;
    EXPECT_FALSE(contains(bare, part)) << part;
  }
  RunRecord unattacked = full_run();
  for (RoundRow& r : unattacked.rounds) r.perturbation_mean = r.perturbation_p95 = 0;
  EXPECT_FALSE(contains(render_report({unattacked}), "The attack in training"));
}

TEST(HtmlTest, ClientsHaveATableAndAHistogram) {
  // Both classes are half correct; only class 0 reaches 0.25 and 0.5.
  const std::string page = render_report({full_run()});
  EXPECT_TRUE(contains(page, "<th>mean %</th><td>50.0</td><td>31.2</td><td>31.2</td>")) << page;
  EXPECT_TRUE(contains(page, "<th>median %</th><td>50.0</td><td>31.2</td><td>31.2</td>"));
  EXPECT_TRUE(contains(page, "<th>worst %</th><td>50.0</td><td>12.5</td><td>12.5</td>"));
  EXPECT_TRUE(contains(page, "<th>worst client</th><td>3</td><td>8</td><td>8</td>"));
  EXPECT_TRUE(contains(page, "<th>95% interval</th><td>"));
  EXPECT_TRUE(contains(page, "<dt>worst client</dt><dd>50.0% ["));
  EXPECT_TRUE(contains(page, "] (client 3, of 2 looked at)</dd>"));
  EXPECT_EQ(count_of(page, "\"name\":\"clients\""), 1);
}

TEST(HtmlTest, ClassesThatClientsHoldButNobodyCertifiedAreNamed) {
  RunRecord run = full_run();
  EXPECT_FALSE(contains(render_report({run}), "Left out"));
  run.class_names = {"cat", "dog", "<newt>"};
  run.clients.push_back({9, {1, 1, 98}});
  EXPECT_TRUE(contains(render_report({run}), "no image of theirs is certified: &lt;newt&gt;."));
}

TEST(HtmlTest, ARunThatIsNotCertifiedShowsItsTraining) {
  RunRecord run = full_run();
  run.rows.clear();
  run.name = "<b>half done";
  run.path = "runs/a";
  const std::string alone = render_report({run});
  EXPECT_TRUE(
      contains(alone, "<p>Not certified yet; <code>fedsmooth certify runs/a</code> does it.</p>"));
  EXPECT_TRUE(contains(alone, "<h2>Training</h2>"));
  EXPECT_TRUE(contains(alone, "<h1>&lt;b&gt;half done</h1>"));
  EXPECT_FALSE(contains(alone, "Certified accuracy"));
  EXPECT_FALSE(contains(alone, "<b>"));
  const std::string both = render_report({run, example_run()});
  EXPECT_TRUE(contains(both, "“&lt;b&gt;half done” is not certified yet."));
}

TEST(HtmlTest, RefusesNoRunsAndRunsWithoutCertificates) {
  EXPECT_THROW(render_report({}), Error);
  EXPECT_THROW(render_report({{"empty", {}, {}, {}}}), Error);
}

}  // namespace
}  // namespace fedsmooth
