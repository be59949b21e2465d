// Published tables of six columns, and other norms: report, plot and compare show them, and nothing
// else takes them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/certify_program.h"
#include "tests/nearest_mean.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kHeader = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class PublishedCommandTest : public ProgramTest {
 protected:
  // Four images: certified at 0.5 and 0.3, wrong, an abstention. As others name their tables.
  std::string write_published(const std::string& name = "noise_0.25") {
    write_file(path(name), kHeader +
                               "0\t3\t3\t0.5\t1\t0:00:03.686402\n"
                               "1\t3\t3\t0.3\t1\t0:00:03\n"
                               "2\t5\t3\t0.9\t0\t0:00:03\n"
                               "3\t5\t-1\t0.0\t0\t0:00:03\n");
    return path(name);
  }
};

class DrawnPublishedTest : public PublishedCommandTest {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
    PublishedCommandTest::SetUp();
  }
};

TEST_F(DrawnPublishedTest, ReportShowsWhatItStatesAndNoMore) {
  const std::string table = write_published();
  const Outcome report = run("report " + table);
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(contains(report.out, "  average certified radius  0.200\n")) << report.out;
  EXPECT_TRUE(contains(report.out, "  sigma                     not stated\n"));
  EXPECT_TRUE(contains(report.out, "whose radii cannot be recomputed"));
  const std::string page = read_file(path("noise_0.25.html"));
  EXPECT_TRUE(contains(page, "<th scope=\"row\">0.50</th><td>25.0</td><td>0.6–80.6</td><td></td>"));
  EXPECT_FALSE(contains(page, "lower bound on the probability of the answer</text>"));
  ASSERT_EQ(run("report " + table + " --sigma 0.25 --alpha 0.001 --n 100000").status, 0);
  const std::string told = read_file(path("noise_0.25.html"));
  EXPECT_TRUE(contains(told, "lower bound on the probability of the answer</text>"));
  EXPECT_TRUE(
      contains(told, "<th scope=\"row\">0.50</th><td>25.0</td><td>0.6–80.6</td><td>0.0</td>"));
}

TEST_F(DrawnPublishedTest, PlotAndCompareTakeIt) {
  const std::string table = write_published();
  ASSERT_EQ(run("plot " + table + " --out " + path("f.svg")).status, 0);
  EXPECT_TRUE(contains(read_file(path("f.svg")), "noise_0.25</text>"));
  const Outcome compared =
      run("compare 'A=" + table + "' B=" + table + " --json --out " + path("c.html"));
  ASSERT_EQ(compared.status, 0) << compared.err;
  const json summary = json::parse(compared.out);
  EXPECT_EQ(summary["images"], 4);
  EXPECT_EQ(summary["norm"], "l2");
  EXPECT_EQ(summary["certified_accuracy"][2]["a"], 0.25);
  EXPECT_EQ(summary["certified_accuracy"][2]["only_a"], 0);
  EXPECT_EQ(summary["average_certified_radius"]["a"], 0.2);
  EXPECT_TRUE(fs::exists(path("c.html")));
}

// 0.5 / sqrt(3072) = 0.00902 = 2.3 / 255, 0.3 / sqrt(3072) = 1.38 / 255.
TEST_F(DrawnPublishedTest, OtherNormsAreNamed) {
  const std::string table = write_published("p.tsv");
  expect_refused(run("report " + table + " --norm linf"),
                 "does not say how many values an image has; give --values, 3072 for CIFAR-10");
  const Outcome report = run("report " + table + " --norm linf --values 3072");
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(contains(report.out, "linf radius"));
  EXPECT_TRUE(contains(report.out, "2/255         25.0")) << report.out;
  EXPECT_TRUE(contains(report.out, "linf: the l2 radius divided by sqrt(3072)"));
  const std::string page = read_file(path("p.html"));
  EXPECT_TRUE(contains(
      page,
      "certified % at ℓ∞ radius</th><th scope=\"col\">0</th><th scope=\"col\">1/255</th><th "
      "scope=\"col\">2/255</th>"));
  EXPECT_TRUE(contains(page, "<th scope=\"row\">2/255</th><td>25.0</td>"));
  ASSERT_EQ(run("plot " + table + " --norm linf --values 3072 --out " + path("f.svg")).status, 0);
  EXPECT_TRUE(contains(read_file(path("f.svg")), "ℓ∞ radius</text>"));
  ASSERT_EQ(run("plot " + table + " --norm l1 --out " + path("f.svg")).status, 0);
  EXPECT_TRUE(contains(read_file(path("f.svg")), "ℓ₁ radius</text>"));
  const Outcome compared = run("compare " + table + " " + table + " --norm linf --values 3072");
  EXPECT_TRUE(contains(compared.out, "  2/255     25.0     25.0")) << compared.out;
  expect_refused(run("plot " + table + " --norm l7 --out " + path("f.svg")),
                 "--norm=l7: must be l2, linf or l1");
}

TEST_F(PublishedCommandTest, ItIsNeverJoinedResumedOrCertifiedAgain) {
  const std::string table = write_published("p.tsv"), why = "p.tsv: is a published table";
  const std::string before = read_file(table);
  expect_refused(run("merge " + table + " --out " + path("m.tsv")), why);
  expect_refused(run("recertify " + table + " --alpha 0.01"), why);
  expect_refused(run("verify " + table), why);
  write_nearest_mean(path("model.safetensors"));
  expect_refused(
      run("certify " + path("model.safetensors") +
          " --data.name=shapes --every 500 --n 200 --device cpu --resume --out " + table),
      why);
  EXPECT_EQ(read_file(table), before);
  EXPECT_FALSE(fs::exists(path("m.tsv")));
}

TEST_F(PublishedCommandTest, HostileTablesAreRefusedInOneLine) {
  for (const auto& [row, what] :
       {std::pair{"0\t3\t3\tnan\t1\t0:00:03\n", "p.tsv:2: radius is \"nan\""},
        {"0\t3\t3\t-1\t1\t0:00:03\n", "p.tsv:2: radius must not be negative"},
        {"0\t3\t3\t1\t1\t0:00:03\n0\t3\t3\t1\t1\t0:00:03\n", "p.tsv:3: idx 0 occurs twice"},
        {"0\t3\t3\t1\t1\n", "p.tsv:2: 5 columns instead of 6"}}) {
    write_file(path("p.tsv"), kHeader + row);
    expect_refused(run("report " + path("p.tsv")), what);
    expect_refused(run("plot " + path("p.tsv") + " --out " + path("f.svg")), what);
    expect_refused(run("compare " + path("p.tsv") + " " + path("p.tsv")), what);
  }
  EXPECT_FALSE(fs::exists(path("p.html")));
  EXPECT_FALSE(fs::exists(path("f.svg")));
}

TEST_F(PublishedCommandTest, ATableBeyondAllMeasureIsNotEvenRead) {
  write_file(path("p.tsv"), kHeader);
  fs::resize_file(path("p.tsv"), 500'000'000'000);  // a hole: it takes no room
  expect_refused(run("report " + path("p.tsv")), "too many for a table of certificates");
}

TEST_F(PublishedCommandTest, CompareRefusesOtherImages) {
  const std::string table = write_published("a.tsv");
  write_file(path("b.tsv"), kHeader + "0\t4\t4\t0.5\t1\t0:00:03\n");
  expect_refused(run("compare " + table + " " + path("b.tsv")),
                 "image 0 has label 3 in A and 4 in B");
  write_file(path("b.tsv"), kHeader + "9\t4\t4\t0.5\t1\t0:00:03\n");
  expect_refused(run("compare " + table + " " + path("b.tsv")), "have no image in common");
  write_file(path("b.tsv"), kHeader);
  expect_refused(run("compare " + table + " " + path("b.tsv")), "has no rows yet");
  expect_refused(run("compare " + table + " " + table + " --out " + path("c.svg")),
                 "must end in .html");
}

class CompareOursTest : public CertifyProgramTest {};

// Our table beside what others would have published of it: the same but for the printed digits.
TEST_F(CompareOursTest, AgreesWithItsOwnFirstSixColumns) {
  ASSERT_EQ(run(certify("--out " + path("ours.tsv"))).status, 0);
  ASSERT_EQ(std::system(("cut -f1-6 " + path("ours.tsv") + " >" + path("six.tsv")).c_str()), 0);
  const Outcome compared = run("compare " + path("ours.tsv") + " " + path("six.tsv") +
                               " --norm linf --values 3072 --json");
  ASSERT_EQ(compared.status, 0) << compared.err;
  const json summary = json::parse(compared.out);
  EXPECT_EQ(summary["images"], 20);
  EXPECT_EQ(summary["certified_accuracy"][0]["difference"]["value"], 0);
  const double ours = summary["average_certified_radius"]["a"];
  const double theirs = summary["average_certified_radius"]["b"];
  EXPECT_GE(ours, theirs);
  EXPECT_NEAR(ours, theirs, 0.01 * ours);
  // d is that of its data, and another is refused.
  ASSERT_EQ(run("report " + path("ours.tsv") + " --norm linf --out " + path("t.md")).status, 0);
  EXPECT_TRUE(
      contains(read_file(path("t.md")), "| certified % at linf radius | images | 0 | 1/255 |"));
  expect_refused(run("report " + path("ours.tsv") + " --values 784 --out " + path("t.md")),
                 "--values=784: images of " + path("ours.tsv") + " have 3072");
}

class VerifyCommandTest : public CertifyProgramTest {};

TEST_F(VerifyCommandTest, PrintsWhatWasChecked) {
  ASSERT_EQ(run(certify("--out " + path("ours.tsv"))).status, 0);
  const std::string verify = "verify " + path("ours.tsv") + " --device cpu --seed=7 --images 3 ";
  const Outcome found = run(verify);
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_TRUE(contains(found.out, "20 rows: each radius follows from its counts")) << found.out;
  EXPECT_TRUE(contains(found.out, "3 of them drawn anew, with seed 7"));
  EXPECT_TRUE(contains(found.out, "nothing speaks against this table"));
  const json summary = json::parse(run(verify + "--json").out);
  EXPECT_EQ(summary["rows"], 20);
  EXPECT_EQ(summary["drawn_anew"].size(), 3U);
  EXPECT_TRUE(summary["plausible"]);
}

}  // namespace
}  // namespace fedsmooth
