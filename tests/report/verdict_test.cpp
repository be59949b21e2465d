#include "fedsmooth/report/verdict.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

// `radii`: of images of class 0, all classified correctly.
RunRecord run_of(const std::string& name, const std::vector<double>& radii, double sigma = 0.25) {
  RunRecord run{name};
  for (const double radius : radii) {
    CertificateRow row;
    row.noise = &kFloatNoise;
    row.n0 = 100;
    row.alpha = 0.001;
    row.sigma = sigma;
    row.certificate.counts.n = 6000;
    row.certificate.predict = 0;
    row.certificate.radius = radius;
    run.rows.push_back(row);
  }
  run.identity.data = "shapes";
  return run;
}

TEST(VerdictTest, NamesTheBestRunFirst) {
  const RunRecord standard = run_of("standard", {0.3, 0.1, 0, 0, 0, 0, 0, 0});
  const RunRecord smoothadv = run_of("smoothadv", {0.3, 0.3, 0.5, 0, 0, 0, 0, 0});
  EXPECT_EQ(verdict({standard, smoothadv}),
            "smoothadv certifies 37.5% of the images within ℓ₂ radius 0.25, standard 12.5%.");
  EXPECT_EQ(verdict_terms({standard, smoothadv}),
            "8 images of shapes, σ = 0.25, n = 6,000, α = 0.001.");
  EXPECT_EQ(describe_runs({standard, smoothadv}), "standard and smoothadv on shapes");
}

TEST(VerdictTest, WholePercentsHaveNoPoint) {
  EXPECT_EQ(verdict({run_of("a", {0.3, 0.1})}),
            "a certifies 50% of the images within ℓ₂ radius 0.25.");
}

TEST(VerdictTest, MaliciousClientsAreNamed) {
  RunRecord groups = run_of("groups", {0.3, 0.1});
  for (CertificateRow& row : groups.rows) row.malicious = 2;
  EXPECT_EQ(
      verdict({groups}),
      "groups (against 2 malicious clients) certifies 50% of the images within ℓ₂ radius 0.25.");
  for (CertificateRow& row : groups.rows) row.malicious = 0;
  EXPECT_EQ(verdict({groups}), "groups certifies 50% of the images within ℓ₂ radius 0.25.");
}

TEST(VerdictTest, OfManyRunsTheBestAndTheWorstAreNamed) {
  std::vector<RunRecord> runs = {run_of("a", {0.3, 0.1}), run_of("b", {0.3, 0.3}),
                                 run_of("c", {0.1, 0.1}), run_of("d", {0.3, 0.1})};
  runs[1].label = "B, γ = 0.1";
  EXPECT_EQ(verdict(runs),
            "Of 4 runs, “B, γ = 0.1” certifies the most images within ℓ₂ radius 0.25, 100%, and c "
            "the fewest, 0%.");
  EXPECT_EQ(describe_runs(runs), "4 runs on shapes");
}

TEST(VerdictTest, TheRadiusFollowsTheLeastNoise) {
  EXPECT_EQ(verdict_radius({run_of("a", {1.0}, 0.5)}), 0.5);
  EXPECT_EQ(verdict_radius({run_of("a", {1.0}, 0.5), run_of("b", {0.3}, 0.25)}), 0.25);
  EXPECT_EQ(verdict_radius({run_of("a", {0.3}, 0.12)}), 0.25);  // the table's least
  EXPECT_EQ(verdict_radius({run_of("a", {0.1}, 0.25)}), 0);     // none reaches 0.25
  RunRecord linf = run_of("a", {0.02}, 0.5);
  linf.norm = Norm::kLinf;
  linf.values = 3072;
  EXPECT_EQ(verdict_radius({linf}), 2.0 / 255);  // 0.5 / sqrt(3072) is 2.3 / 255
}

TEST(VerdictTest, AtRadiusZeroItSaysSo) {
  EXPECT_EQ(verdict({run_of("a", {0.1, 0})}), "a certifies 100% of the images at radius 0.");
}

TEST(VerdictTest, TermsThatDifferAreRanges) {
  RunRecord more = run_of("b", {0.3, 0.3}, 0.5);
  more.rows[0].certificate.counts.n = 100'000;
  more.identity.data = "cifar10";
  EXPECT_EQ(verdict_terms({run_of("a", {0.3}), more}),
            "1 to 2 images of cifar10 and shapes, σ = 0.25 to 0.5, n = 6,000 to 100,000, α = "
            "0.001. Not all runs are about the same images.");
}

TEST(VerdictTest, OtherImagesAreNoted) {
  RunRecord a = run_of("a", {0.3}), b = run_of("b", {0.3});
  const std::string same = "1 images of shapes, σ = 0.25, n = 6,000, α = 0.001.";
  EXPECT_EQ(verdict_terms({a, b}), same);
  b.identity.data_sha256 = "another";
  EXPECT_EQ(verdict_terms({a, b}), same + " Not all runs are about the same images.");
}

TEST(VerdictTest, WhatAPublishedTableDoesNotStateIsLeftOut) {
  RunRecord published = run_of("cohen", {0.3, 0.1}, 0);
  published.identity.data.reset();
  for (CertificateRow& row : published.rows) {
    row.published = true;
    row.alpha = 0;
    row.certificate.counts.n = 0;
  }
  EXPECT_EQ(verdict_terms({published}), "2 images.");
  EXPECT_EQ(verdict({published}), "cohen certifies 50% of the images within ℓ₂ radius 0.25.");
}

TEST(VerdictTest, RunsThatAreNotCertifiedAreNamed) {
  RunRecord trained{"b"};
  trained.rounds = {{1, 2.0}, {2, 1.25}};
  EXPECT_EQ(verdict({run_of("a", {0.3}), trained}),
            "a certifies 100% of the images within ℓ₂ radius 0.25. b is not certified yet.");
  EXPECT_EQ(verdict({trained}),
            "b has trained for 2 rounds; its loss is 1.25. b is not certified yet.");
  EXPECT_EQ(verdict_terms({trained}), "");
}

TEST(VerdictTest, UnequalTrainingIsNoted) {
  RunRecord a{"a"}, b{"b"};
  a.rounds = {{20, 2.0}};
  b.rounds = {{60, 2.0}};
  EXPECT_EQ(note_on_rounds({a, b}),
            "The runs were not trained equally long: a for 20 rounds and b for 60 rounds.");
  EXPECT_EQ(note_on_rounds({a, a}), "");
  EXPECT_EQ(note_on_rounds({a, run_of("certified alone", {0.3})}), "");
}

TEST(VerdictTest, ThousandsAreGrouped) {
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

}  // namespace
}  // namespace fedsmooth
