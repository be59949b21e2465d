#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "fedsmooth/report/page/html.h"

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
                   row(1, 1, 0.2, 0.8)}};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TableTest, HasTheNumbersOfThePage) {
  const std::string table = render_table({example_run()});
  EXPECT_TRUE(contains(table, "runs/example\n"));
  EXPECT_TRUE(contains(table, "      0.00         50.0       6.8 to 93.2         0.0\n")) << table;
  EXPECT_TRUE(contains(table, "      0.25         25.0       0.6 to 80.6         0.0\n"));
  EXPECT_TRUE(contains(table, "  abstained                 25.0% [0.6, 80.6]\n"));
  EXPECT_TRUE(contains(table, "  wrong but certified       25.0% [0.6, 80.6]\n"));
  EXPECT_TRUE(contains(table, "  average certified radius  0.175\n"));
  EXPECT_TRUE(contains(table, "  classes predicted         2 (2 occur as labels)\n"));
}

TEST(TableTest, BoundIsRoundedDown) {
  RunRecord run = example_run();
  run.rows.assign(550, row(0, 0, 0.1, 0.9));  // 0.98980...
  EXPECT_TRUE(contains(render_table({run}), "        98.9\n")) << render_table({run});
}

TEST(TableTest, ImagesWithoutVotesAreCountedApart) {
  RunRecord run = example_run();
  run.rows[1].certificate = {.counts = {.selected = 1}, .predict = 1};  // --only-correct
  const std::string table = render_table({run});
  EXPECT_TRUE(contains(table, "  n                         100000\n")) << table;
  EXPECT_TRUE(contains(table, "  not estimated             1 of 4 images"));
}

TEST(TableTest, WarnsWhenClassesAreNeverPredicted) {
  RunRecord run = example_run();
  run.rows.push_back(row(2, 1, 0.1, 0.9));
  EXPECT_TRUE(contains(render_table({run}), "answers only 2 classes although 3 occur"));
}

TEST(TableTest, WarnsWhenItNeverAnswers) {
  RunRecord run = example_run();
  run.rows = {row(1, kAbstain, 0, 0.3)};
  EXPECT_TRUE(contains(render_table({run}), "warning: It never answers"));
}

TEST(TableTest, WarnsWhenCertificatesDoNotBelongTogether) {
  RunRecord run = example_run();
  EXPECT_FALSE(contains(render_table({run}), "warning"));
  run.rows[1].sigma = 0.5;
  const std::string table = render_table({run});
  EXPECT_TRUE(contains(table, "warning: The certificates are about several classifiers"));
  EXPECT_TRUE(contains(table, "  sigma                     0.25 to 0.5\n"));
}

TEST(TableTest, HasALineForTheWorstClient) {
  RunRecord run = example_run();
  EXPECT_FALSE(contains(render_table({run}), "client"));
  run.clients = {{3, {1, 0}}, {17, {0, 1}}};
  run.rows.push_back(row(1, kAbstain, 0, 0.3));
  const std::string table = render_table({run});
  EXPECT_TRUE(contains(table, "  worst client              33.3% [0.0, ")) << table;
  EXPECT_TRUE(contains(table, "] (client 17, of 2 looked at)\n")) << table;
}

TEST(TableTest, SaysThatARunIsNotCertified) {
  RunRecord run{"runs/new"};
  run.rounds = {{1, 2.25, {}, 0, 0, 0, {}, 0, 3},
                {2, 1.5, 0.25, 0, 0, 0, {}, 0, 1},
                {3, 1.25, {}, 0, 0, 0, {}, 0, 2}};
  const std::string table = render_table({run});
  EXPECT_TRUE(contains(table, "runs/new\n  not certified yet; `fedsmooth certify RUN` does it\n"));
  EXPECT_TRUE(contains(table, "  rounds                    3, 2 s each\n")) << table;
  EXPECT_TRUE(contains(table, "  loss                      1.25 in the last round\n"));
  EXPECT_TRUE(contains(table, "  noisy accuracy            25.0% (round 2)\n"));
  EXPECT_FALSE(contains(table, "99.9%"));
}

TEST(TableTest, StaysWithinAHundredColumns) {
  RunRecord run = example_run();
  run.name = std::string(300, 'n') + "\nsecond line";
  for (CertificateRow& r : run.rows) r.base = std::string(300, 'b');
  run.rows[0].sigma = 0.1234567890123456;
  run.rows.push_back(row(2, 1, 1e9, 0.9));
  std::istringstream lines(render_table({run, run}));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto width =
        std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_LE(width, 100) << line;
  }
  EXPECT_GT(count, 20);
}

}  // namespace
}  // namespace fedsmooth
