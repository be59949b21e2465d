#include "fedsmooth/report/page/compare_page.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

RunRecord run_of(const std::string& name, std::vector<double> radii) {
  RunRecord run{name};
  for (size_t i = 0; i < radii.size(); ++i) {
    CertificateRow row;
    row.noise = &kFloatNoise;
    row.index = static_cast<int64_t>(i);
    row.published = true;
    row.certificate.predict = radii[i] < 0 ? kAbstain : 0;
    row.certificate.radius = std::max(radii[i], 0.0);
    run.rows.push_back(row);
  }
  return run;
}

ComparedRuns compared(const std::string& name_a, const std::string& name_b) {
  ComparedRuns runs{run_of(name_a, {0.5, 0.3, -1, 0.1}), run_of(name_b, {0.2, 0.3, 0.4, -1}), 9, 4};
  runs.paired = compare_paired(runs.a, runs.b);
  return runs;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ComparePageTest, TableHasBothAndTheirDifference) {
  const std::string table = render_compare_table(compared("ours", "theirs"));
  EXPECT_TRUE(contains(table, "A  ours\nB  theirs\n4 images that both have (A 9, B 4)\n")) << table;
  EXPECT_TRUE(contains(table, "l2 radius"));
  // 3 and 3 of 4 at 0; at 0.25 images 0 and 1, and 1 and 2; at 0.5 image 0 alone.
  EXPECT_TRUE(
      contains(table, "0.00     75.0     75.0      +0.0         -80.6 to +80.6*       1       1"))
      << table;
  EXPECT_TRUE(
      contains(table, "0.50     25.0      0.0     +25.0         -60.2 to +80.6*       1       0"))
      << table;
  EXPECT_TRUE(contains(table, "average radius    0.225    0.225    +0.000   too few images differ"))
      << table;
  EXPECT_TRUE(contains(table, "nothing in them was recomputed"));
}

TEST(ComparePageTest, RunsOfGroupsAreComparedAgainstEachNumberOfMaliciousClients) {
  ComparedRuns runs = compared("ours", "theirs");
  EXPECT_FALSE(contains(render_compare_page(runs), "Malicious clients"));
  const PairedAtRadius none{0, 3, 1, 0, 1.0, 0.75, {0.25, -0.6, 0.8, true}};
  const PairedAtRadius two{0, 1, 0, 1, 0.25, 0.5, {-0.25, -0.8, -0.1}};
  runs.threats = {{0, 2}, {0}, {{none}, {two}}};
  const std::string page = render_compare_page(runs);
  EXPECT_TRUE(contains(page, ">100.0 / 75.0 (+25.0)</td>")) << page;
  EXPECT_TRUE(contains(page, ">25.0 / 50.0 (-25.0)</td>"));
  const std::string table = render_compare_table(runs);
  EXPECT_TRUE(contains(table, "0 malicious clients         +25.0 \n")) << table;
  EXPECT_TRUE(contains(table, "2 malicious clients         -25.0!\n")) << table;
}

TEST(ComparePageTest, HasFigureTableAndNames) {
  const std::string page = render_compare_page(compared("ours", "theirs"));
  EXPECT_TRUE(contains(page, "<th>0.50</th><td>25.0</td><td>0.0</td><td>+25.0</td>"));
  EXPECT_TRUE(contains(page, "<dd>4 that both have (A 9, B 4)</dd>"));
  EXPECT_TRUE(contains(page, "<span>A: ours</span>"));
  EXPECT_TRUE(contains(page, "<span>B: theirs</span>"));
  EXPECT_TRUE(contains(page, "<h1>ours against theirs</h1>"));
  EXPECT_TRUE(contains(page,
                       "Of 4 images, A certifies 50.0% within ℓ₂ radius 0.25 and B 50.0%: +0.0 "
                       "points, 95% interval -80.6 to +80.6*."))
      << page;
  EXPECT_TRUE(contains(page, "ℓ₂ radius</text>"));
  EXPECT_TRUE(contains(page, "A − B (points)</text>"));
}

TEST(ComparePageTest, NamesStayText) {
  const std::string name = "<script>alert('x')</script>\n\"`touch /tmp/x`\" & 'q'";
  const std::string page = render_compare_page(compared(name, name));
  EXPECT_FALSE(contains(page, "<script>alert"));
  EXPECT_TRUE(
      contains(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &quot;`touch /tmp/x`"));
  const ComparedRuns runs = compared(name, name);
  EXPECT_FALSE(contains(render_compare_table(runs), "\n\"`"));
}

TEST(ComparePageTest, NormIsNamed) {
  ComparedRuns runs = compared("a", "b");
  for (RunRecord* run : {&runs.a, &runs.b}) {
    run->norm = Norm::kLinf;
    run->values = 3072;
    for (CertificateRow& row : run->rows) {
      row.certificate.radius = radius_in(Norm::kLinf, row.certificate.radius, 3072);
    }
  }
  runs.paired = compare_paired(runs.a, runs.b);
  const std::string page = render_compare_page(runs);
  EXPECT_TRUE(contains(page, "<th>ℓ∞ radius</th>"));
  EXPECT_TRUE(contains(page, "<th>2/255</th>"));
  EXPECT_TRUE(contains(page, "ℓ∞ radius</text>"));
  EXPECT_FALSE(contains(page, "ℓ₂"));
  EXPECT_TRUE(contains(render_compare_table(runs), "linf radius"));
}

}  // namespace
}  // namespace fedsmooth
