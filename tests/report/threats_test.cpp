#include "fedsmooth/report/threats.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fedsmooth/report/comparison.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/page/threat_section.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

// An image of 5 groups; of 1000 copies `safe[m]` have a gap of exactly 2 m, the others are below 0.
CertificateRow row_of(int64_t index, const std::vector<int64_t>& safe, int64_t label = 1) {
  CertificateRow row;
  row.index = index;
  row.label = label;
  row.noise = &kFloatNoise;
  row.alpha = 0.001;
  row.sigma = 0.5;
  row.malicious = 0;
  Counts counts = {.selected = 1, .n = 1000, .gaps = Gaps(7, 0)};
  int64_t left = 1000;
  for (size_t m = 0; m < safe.size(); ++m) {
    counts.gaps[2 * m] = safe[m];
    left -= safe[m];
  }
  counts.gaps.back() = left;
  counts.top = copies_safe_from(counts.gaps, 0);
  row.certificate =
      certificate_from_counts(counts, row.sigma, row.alpha, RadiusKind::kOneSided, row.law());
  return row;
}

RunRecord example_run() {
  RunRecord run{"example"};
  run.identity.groups = 5;
  run.rows = {row_of(0, {0, 0, 1000}),     // safe from 2
              row_of(1, {0, 1000, 0}),     // from 1
              row_of(2, {1000, 0, 0}),     // from none
              row_of(3, {0, 0, 1000}, 2),  // wrong
              row_of(4, {0, 0, 100})};     // abstains
  return run;
}

TEST(ThreatsTest, AccuracyAgainstMIsThatOfTheGaps) {
  const RunRecord run = example_run();
  const auto threats = list_threats(run);
  ASSERT_TRUE(threats.has_value());
  EXPECT_EQ(threats->malicious, (std::vector<int64_t>{0, 1, 2}));  // 5 groups withstand two
  for (size_t r = 0; r < threats->radii.size(); ++r) {
    EXPECT_DOUBLE_EQ(threats->accuracy[0][r], 0.6) << threats->radii[r];
    EXPECT_DOUBLE_EQ(threats->accuracy[1][r], 0.4);
    EXPECT_DOUBLE_EQ(threats->accuracy[2][r], 0.2);
  }
  // 0.5 Phi^-1(0.001^(1/1000)) = 1.23: all columns up to it.
  EXPECT_EQ(threats->radii, (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(certified_accuracy(rows_against(run, 2), 0.5), 0.2);
}

TEST(ThreatsTest, RadiiAreInTheRunsNorm) {
  RunRecord run = example_run();
  run.norm = Norm::kLinf;
  run.values = 4;
  EXPECT_DOUBLE_EQ(rows_against(run, 1)[0].certificate.radius,
                   radius_in(Norm::kLinf, run.rows[0].certificate.radius, 4));
}

TEST(ThreatsTest, OneNetworkHasNone) {
  RunRecord run = example_run();
  for (CertificateRow& row : run.rows) {
    row.malicious = std::nullopt;
    row.certificate.counts.gaps.clear();
  }
  EXPECT_FALSE(list_threats(run).has_value());
  EXPECT_EQ(render_threat_section(run), "");
  EXPECT_EQ(render_markdown({run}).find("malicious"), std::string::npos);
}

TEST(ThreatsTest, TwoRunsAreComparedAtTheNumbersThatBothHave) {
  const RunRecord a = example_run();
  RunRecord b = example_run();
  b.identity.groups = 3;                // which withstand one
  b.rows[2] = row_of(2, {0, 1000, 0});  // better than in a
  const auto compared = compare_threats(a, b);
  ASSERT_TRUE(compared.has_value());
  EXPECT_EQ(compared->malicious, (std::vector<int64_t>{0, 1}));
  for (size_t r = 0; r < compared->radii.size(); ++r) {
    const PairedAtRadius &none = compared->at[0][r], &one = compared->at[1][r];
    EXPECT_EQ(none.only_a + none.only_b, 0);
    EXPECT_EQ(one.only_a, 0);
    EXPECT_EQ(one.only_b, 1);
    EXPECT_DOUBLE_EQ(one.difference.value, -0.2);
  }
  const std::string text = render_compared_threats(Norm::kL2, *compared);
  EXPECT_NE(text.find("1 malicious client          -20.0"), std::string::npos) << text;
  b.rows[0].malicious = std::nullopt;
  EXPECT_FALSE(compare_threats(a, b).has_value());
}

TEST(ThreatsTest, VotesStoppedEarlyShowTheirOwnNumberAlone) {
  RunRecord run = example_run();
  for (CertificateRow& row : run.rows) {
    row.rule = VoteRule::kRadii;
    row.malicious = 1;
    row.certificate.counts.gaps.clear();
  }
  EXPECT_EQ(list_threats(run)->malicious, std::vector<int64_t>{1});
  EXPECT_NE(level_of_threats(run).find("stopped early"), std::string::npos);
}

TEST(ThreatsTest, TheTextSaysAtWhichLevelItHoldsAndWhatItTakesForGranted) {
  RunRecord run = example_run();
  const std::string text = render_threats(run, *list_threats(run));
  EXPECT_NE(text.find("2 malicious clients"), std::string::npos) << text;
  EXPECT_NE(text.find("each point holds at this alpha by itself"), std::string::npos) << text;
  EXPECT_NE(text.find("drawn from the operating system after training"), std::string::npos);
  size_t longest = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  EXPECT_LE(longest, 100U);
  run.identity.seed_given = true;
  run.identity.seed = 7;
  EXPECT_NE(render_threats(run, *list_threats(run)).find("seed, 7, was given"), std::string::npos);
  const std::string markdown = render_markdown({run});
  EXPECT_NE(markdown.find("| against 1 malicious | 40.0 |"), std::string::npos) << markdown;
}

TEST(ThreatsTest, OneClientIsNotSeveral) {
  RunRecord run = example_run();
  for (const auto& [malicious, words] :
       {std::pair{1, "at most 1 malicious client"}, {2, "at most 2 malicious clients"}}) {
    for (CertificateRow& row : run.rows) row.malicious = malicious;
    const auto facts = list_facts(run);
    const auto fact =
        std::ranges::find_if(facts, [](const auto& f) { return f.first == "radii are against"; });
    ASSERT_NE(fact, facts.end());
    EXPECT_EQ(fact->second, words);
  }
}

TEST(ThreatsTest, ThePageHasATableAndACurveForEachNumber) {
  const std::string html = render_threat_section(example_run());
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_NE(html.find("<tr><th>2</th><td>20.0</td>"), std::string::npos);
  EXPECT_NE(html.find("This takes for granted"), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
