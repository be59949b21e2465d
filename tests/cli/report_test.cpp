// report on a sweep's folder, and its table in Markdown.
#include <gtest/gtest.h>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/clients.h"
#include "fedsmooth/records/rounds.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class ReportCommandTest : public ProgramTest {
 protected:
  // A run of four images at sigma 0.25, of which `correct` are so, with growing radii.
  void write_run(const std::string& name, int64_t correct) {
    std::string table = certificate_header();
    for (int64_t i = 0; i < 4; ++i) {
      CertificateRow row = {.index = i,
                            .label = i < correct ? 1 : 0,
                            .n0 = 100,
                            .alpha = 0.001,
                            .sigma = 0.25,
                            .base = "cpu"};
      row.noise = &kFloatNoise;
      const Counts counts = {.selected = 1, .n = 1000, .top = 600 + 130 * i, .runner_up = 10};
      row.certificate =
          certificate_from_counts(counts, row.sigma, row.alpha, RadiusKind::kOneSided, kFloatNoise);
      table += format_row(row);
    }
    write_file(path("all/" + name + "/certificates.tsv"), table);
  }

  std::string page() const { return read_file(path("all/report.html")); }
};

class DrawnReportTest : public ReportCommandTest {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
    ReportCommandTest::SetUp();
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// No bound exists at its alpha, which must not end the report on the others.
TEST_F(ReportCommandTest, LeavesOutATableWithAnAbsurdAlpha) {
  for (const std::string run : {"a", "b"}) write_run(run, 3);
  CertificateRow row = {.n0 = 100, .alpha = 1e-100, .sigma = 0.25, .base = "cpu"};
  row.noise = &kFloatNoise;
  row.certificate.counts = {.selected = 1, .n = 1000, .top = 2, .runner_up = 10};
  write_file(path("all/c/certificates.tsv"), certificate_header() + format_row(row));
  const Outcome report = run("report " + path("all") + " --out " + path("t.md"));
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(contains(read_file(path("t.md")), "| b |"));
  EXPECT_TRUE(contains(report.err, "alpha must be at least 1e-50 and below 1")) << report.err;
  const Outcome one = run("report " + path("all/c"));
  EXPECT_EQ(one.status, 2);
}

constexpr const char* kFigures = R"(
[[figure]]
name = "figure-1"
caption = "Both <modes>."
panels = [{title = "Central", runs = "central-*"}, {title = "Federated", runs = "federated-*"}]
[[figure]]
name = "figure-2"
caption = "None."
panels = [{title = "Nothing", runs = "other-*"}]
[labels]
central = "Centralized"
a = "Method <A>"
)";

TEST_F(DrawnReportTest, SweepHasItsFigures) {
  for (const std::string run : {"central-a", "central-b", "federated-a"}) write_run(run, 3);
  write_file(path("all/begun/experiment.toml"), "");
  write_file(path("all/begun/rounds.tsv"), round_header());
  write_file(path("all/figures.toml"), kFigures);
  const Outcome report = run("report " + path("all"));
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(contains(report.out, "certified % at l2 radius")) << report.out;
  EXPECT_FALSE(contains(report.out, "begun"));
  EXPECT_TRUE(contains(page(), "<figcaption>Both &lt;modes&gt;."));
  EXPECT_TRUE(contains(page(), "<p class=\"plot-title\">Federated</p>"));
  EXPECT_TRUE(contains(page(), "<span>Method &lt;A&gt;</span>"));
  EXPECT_TRUE(contains(page(), ">Centralized, Method &lt;A&gt;</a>"));
  EXPECT_TRUE(contains(page(), "figure-2 is left out: none of its runs is certified."));
  // No chart of all runs at once.
  EXPECT_FALSE(contains(page(), "\"name\":\"certified-accuracy\""));
  EXPECT_TRUE(contains(page(), "<h3 class=\"run-name\">Centralized, Method &lt;A&gt;</h3>"));
  for (const std::string ending : {".svg", ".png"}) {
    EXPECT_GT(fs::file_size(path("all/figures/figure-1" + ending)), 1000U);
    EXPECT_FALSE(fs::exists(path("all/figures/figure-2" + ending)));
  }
  ASSERT_EQ(run("report " + path("all") + " --out " + path("else/page.html")).status, 0);
  EXPECT_TRUE(fs::exists(path("else/figures/figure-1.svg")));
}

TEST_F(DrawnReportTest, SweepWithoutFiguresIsAPageLikeAnyOther) {
  write_run("a", 3);
  write_run("b", 2);
  ASSERT_EQ(run("report " + path("all")).status, 0);
  const std::string folder = page();
  ASSERT_EQ(
      run("report " + path("all/a") + " " + path("all/b") + " --out " + path("page.html")).status,
      0);
  EXPECT_EQ(folder, read_file(path("page.html")));
  EXPECT_FALSE(fs::exists(path("all/figures")));
}

TEST_F(DrawnReportTest, ManyRunsAreFoldedAndMoreAreNotDrawnTogether) {
  for (char name = 'a'; name < 'a' + 6; ++name) write_run(std::string("run-") + name, 3);
  ASSERT_EQ(run("report " + path("all")).status, 0);
  EXPECT_FALSE(contains(page(), "<div class=\"run\""));
  write_run("run-g", 3);
  ASSERT_EQ(run("report " + path("all")).status, 0);
  EXPECT_TRUE(
      contains(page(), "<div class=\"run\" id=\"run-run-g\"><details>\n<summary>run-g</summary>"));
  EXPECT_TRUE(contains(page(), "<span>run-g</span>"));
  for (char name = 'h'; name < 'a' + 13; ++name) write_run(std::string("run-") + name, 3);
  ASSERT_EQ(run("report " + path("all")).status, 0);
  EXPECT_FALSE(contains(page(), "<span>run-g</span>"));
  EXPECT_TRUE(contains(page(), "<a href=\"#run-run-m\">run-m</a>"));
}

TEST_F(DrawnReportTest, AMissingImageIsToldInTheFigure) {
  write_run("central-a", 3);
  write_file(path("all/central-a/certificates.json"),
             R"({"identity": {"images": 9, "noise": "float-2"}})");
  write_file(path("all/figures.toml"), kFigures);
  ASSERT_EQ(run("report " + path("all")).status, 0);
  EXPECT_TRUE(contains(page(), "<span>Method &lt;A&gt; (4 of 9 images)</span>"));
}

TEST_F(ReportCommandTest, RefusesABadListAndASweepThatHasNotBegun) {
  write_file(path("all/a/experiment.toml"), "");
  expect_refused(run("report " + path("all")), "all: no run here has certificates or rounds yet");
  write_run("a", 3);
  write_file(path("all/figures.toml"), "[[figure]]\nname = 3\n");
  expect_refused(run("report " + path("all")), "figures.toml:1: caption: is missing");
  EXPECT_FALSE(fs::exists(path("all/report.html")));
}

// 600, 730, 860 and 990 of 1000 votes have the lower bounds 0.551, 0.685, 0.823 and 0.976 and so
// the radii 0.032, 0.120, 0.232 and 0.495. Exact 95% intervals: 4 of 4 [39.8, 100], 2 of 4
// [6.8, 93.2], 1 of 4 [0.6, 80.6], 0 of 4 [0, 60.2].
TEST_F(ReportCommandTest, MarkdownHasARowPerRun) {
  write_run("all_right", 4);
  write_run("half", 2);
  write_file(path("all/trained/rounds.tsv"), round_header() + format_round({1, 2.3}));
  const Outcome report = run("report " + path("all") + " --out " + path("t.md"));
  ASSERT_EQ(report.status, 0) << report.err;
  const std::string table = read_file(path("t.md"));
  EXPECT_TRUE(contains(table,
                       "| certified % at l2 radius | images | 0.00 | 0.25 | ACR | abstained % |\n"
                       "|---|--:|--:|--:|--:|--:|\n"))
      << table;
  EXPECT_TRUE(
      contains(table, "| all\\_right | 4 | 100.0 (39.8–100.0) | 25.0 (0.6–80.6) | 0.220 | 0.0 |\n"))
      << table;
  EXPECT_TRUE(contains(table, "| half | 4 | 50.0 (6.8–93.2) | 0.0 (0.0–60.2) | 0.038 | 0.0 |\n"))
      << table;
  EXPECT_TRUE(contains(table, "| trained | not certified yet |\n"));
  ASSERT_EQ(run("report 'n = 4=" + path("all/half") + "' --out " + path("named.md")).status, 0);
  EXPECT_TRUE(contains(read_file(path("named.md")), "| n = 4 | 4 | 50.0"));
  ASSERT_EQ(run("report " + path("all/half") + " --out " + path("one.md")).status, 0);
  EXPECT_TRUE(contains(read_file(path("one.md")), "| half | 4 | 50.0 (6.8–93.2) | 0.0"));
}

// "half" is right about class 1 and wrong about class 0.
TEST_F(ReportCommandTest, MarkdownNamesTheWorstClientWhereClientsAreKnown) {
  write_run("half", 2);
  write_run("other", 4);
  write_file(path("all/half/clients.tsv"), format_clients({{0, {2, 2}}, {1, {3, 1}}}));
  ASSERT_EQ(run("report " + path("all") + " --out " + path("t.md")).status, 0);
  const std::string table = read_file(path("t.md"));
  EXPECT_TRUE(contains(table, "| ACR | abstained % | worst client % |\n")) << table;
  EXPECT_TRUE(contains(table, "| 0.038 | 0.0 | 25.0 (0.0–")) << table;
  EXPECT_TRUE(contains(table, "| 0.220 | 0.0 |  |\n")) << table;
  EXPECT_TRUE(contains(table, "an estimate of the least that any client may expect")) << table;
}

}  // namespace
}  // namespace fedsmooth
