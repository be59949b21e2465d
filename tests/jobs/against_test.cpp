// Cost-sensitive radii of a table, from its stored votes.
#include "fedsmooth/jobs/against.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/file.h"
#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/identities.h"
#include "tests/jobs/job_folder.h"
#include "tests/nearest_mean.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class AgainstJobTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    write_nearest_mean(path("model.safetensors"));
    table_ = certify("t.tsv");
    names_ = jobs::load_run(table_).class_names;
    ASSERT_EQ(names_.size(), 10U);
  }

  fs::path certify(const std::string& table, Overrides more = {}) {
    more.insert(
        more.begin(),
        {{"data.name", "shapes"}, {"certify.n", "1000"}, {"certify.every", "50"}, {"seed", "1"}});
    return jobs::certify({.path = path("model.safetensors").string(), .out = path(table).string()},
                         more, context_);
  }
  AvoidingRows rows(const jobs::AgainstOptions& options, double alpha = 0) {
    return jobs::certify_against({table_.string(), options, alpha, ""}).found;
  }
  std::string refused(const jobs::AgainstOptions& options, double alpha = 0) {
    return refusal([&] { rows(options, alpha); });
  }
  std::string superclasses(const std::string& text) {
    write_file(path("s.toml"), text);
    return path("s.toml").string();
  }
  // All classes in two superclasses, the first three and the others.
  std::string two_superclasses() {
    std::string text = "few = [";
    for (int c = 0; c < 10; ++c) text += (c == 3 ? "]\nmany = ['" : "'") + names_[c] + "', ";
    return superclasses(text + "]");
  }

  fs::path table_;
  std::vector<std::string> names_;
};

TEST_F(AgainstJobTest, RadiiFollowFromTheStoredVotes) {
  const AvoidingRows found = rows({{names_[1] + "," + names_[2]}});
  const std::vector<CertificateRow> table = read_certificates(table_);
  ASSERT_EQ(found.rows.size(), table.size());
  int64_t others = 0, positive = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const CertificateRow& row = table[i];
    EXPECT_EQ(found.rows[i].radius, radius_against(row.certificate.counts, {{1, 2}}, 10, row.sigma,
                                                   row.alpha, row.law()));
    others += row.label != 1 && row.label != 2;
    positive += found.rows[i].radius > 0;
    if (found.rows[i].selected == 1) {
      EXPECT_EQ(found.rows[i].radius, 0);
    }
  }
  EXPECT_EQ(found.images, others);
  EXPECT_GT(positive, 0);
  // By number, one at a time, in any order.
  const AvoidingRows again = rows({{"2", "1"}});
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(again.rows[i].radius, found.rows[i].radius);
  }
  // A smaller alpha claims less.
  EXPECT_LT(rows({{"1,2"}}, 1e-9).rows[0].radius, found.rows[0].radius);
}

// Against fewer classes the radius is larger: all others, another superclass, one class.
TEST_F(AgainstJobTest, FewerClassesAreFurtherAway) {
  const AvoidingRows by_superclass = rows({.superclasses = two_superclasses()});
  EXPECT_EQ(by_superclass.images, std::ssize(by_superclass.rows));
  const AvoidingRows against_few = rows({{"few"}, two_superclasses()});
  const AvoidingRows against_one = rows({{"0"}});
  const AvoidingRows top1 = rows({.top = 1}), top3 = rows({.top = 3});
  const std::vector<CertificateRow> table = read_certificates(table_);
  for (size_t i = 0; i < table.size(); ++i) {
    const Counts& counts = table[i].certificate.counts;
    const double multiclass = certificate_from_counts(counts, table[i].sigma, table[i].alpha,
                                                      RadiusKind::kMulticlass, kFloatNoise)
                                  .radius;
    EXPECT_GE(by_superclass.rows[i].radius, multiclass);
    EXPECT_EQ(top1.rows[i].radius, multiclass);
    EXPECT_GE(top3.rows[i].radius, multiclass);
    if (counts.selected < 3) continue;
    EXPECT_EQ(against_few.rows[i].radius, by_superclass.rows[i].radius);
    EXPECT_GE(against_one.rows[i].radius, against_few.rows[i].radius);
  }
  EXPECT_GE(top3.certified[0].share.value, top1.certified[0].share.value);
}

TEST_F(AgainstJobTest, ImagesOfTheseClassesAloneHaveNoShare) {
  std::vector<CertificateRow> one = read_certificates(table_);
  one.resize(1);
  const int64_t label = one[0].label;
  write_like(table_, path("one.tsv"), one);
  table_ = path("one.tsv");
  const AvoidingRows found = rows({{std::to_string(label)}});
  EXPECT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.images, 0);
  EXPECT_TRUE(found.certified.empty());
}

TEST_F(AgainstJobTest, WritesATableAndWhatItIsAbout) {
  const AgainstResult result =
      jobs::certify_against({table_.string(), {{names_[3]}}, 0, path("a.tsv").string()});
  EXPECT_EQ(result.claim, "g is never " + names_[3]);
  EXPECT_EQ(result.alpha, 0.001);
  const std::string text = read_file(path("a.tsv"));
  EXPECT_EQ(text.rfind("idx\tlabel\tselected\tradius_against\n", 0), 0U);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::ssize(result.found.rows) + 1);
  const auto sidecar = nlohmann::json::parse(read_file(path("a.json")));
  EXPECT_EQ(sidecar["claim"], result.claim);
  EXPECT_EQ(sidecar["identity"], read_identity(table_).to_json());
  EXPECT_NE(refusal([&] {
              jobs::certify_against({table_.string(), {{"3"}}, 0, path("a.tsv").string()});
            }).find("exists; choose another --out"),
            std::string::npos);
}

TEST_F(AgainstJobTest, ThePageAndTheMarkdownOfAReportHaveIt) {
  const auto written = [&](const std::string& file) {
    const std::vector<RunRecord> runs =
        jobs::report({table_.string()}, path(file), context_, {}, {{names_[3]}});
    EXPECT_TRUE(runs[0].against);
    return read_file(path(file));
  };
  const std::string page = written("page.html");
  EXPECT_NE(page.find("<h3>Against given classes</h3>"), std::string::npos);
  EXPECT_NE(page.find("Within the radius g is never " + names_[3]), std::string::npos);
  const std::string markdown = written("table.md");
  EXPECT_NE(markdown.find("| g is never " + names_[3] + " |"), std::string::npos) << markdown;
  jobs::report({table_.string()}, path("plain.html"), context_);
  EXPECT_EQ(read_file(path("plain.html")).find("Against given classes"), std::string::npos);
}

// A folder of classes 0 to 10 sorts them as 0, 1, 10, 2, ..., so class 2 is called "10".
TEST_F(AgainstJobTest, ANumberIsNotTheNameOfAnotherClass) {
  const std::vector<std::string> names = {"0", "1", "10", "2"};
  EXPECT_EQ(jobs::find_avoidance({{"2"}}, names, 4).classes, std::vector<int64_t>{3});
  EXPECT_EQ(jobs::find_avoidance({.numbers = {2}}, names, 4).classes, std::vector<int64_t>{2});
  EXPECT_EQ(jobs::find_avoidance({.against = {"2"}, .numbers = {2, 0}}, names, 4).classes,
            (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(refusal([&] { jobs::find_avoidance({.numbers = {4}}, names, 4); }),
            "--against: class 4 of 4");
  EXPECT_EQ(refusal([] {
              jobs::find_avoidance({{"a"}}, {"a", "b", "a"}, 3);
            }),
            "\"a\" is the name of two classes; give their numbers");
  EXPECT_EQ(jobs::find_avoidance({{"b"}}, {"a", "b", "a"}, 3).classes, std::vector<int64_t>{1});
}

TEST_F(AgainstJobTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refused({{"brid"}}),
            "--against: \"brid\" is no class of the table; classes are 0 to 9 or their names");
  EXPECT_NE(refused({{"10"}}).find("is no class"), std::string::npos);
  EXPECT_NE(refused({{"-1"}}).find("is no class"), std::string::npos);
  EXPECT_NE(refused({{"0,1,2,3,4,5,6,7,8,9"}}).find("lists every class"), std::string::npos);
  EXPECT_NE(refused({.top = 10}).find("--top=10: must be from 1 to 9"), std::string::npos);
  EXPECT_NE(refused({{"1"}, "", 2}).find("not together"), std::string::npos);
  EXPECT_NE(refused({.superclasses = superclasses("few = ['" + names_[0] + "']")})
                .find(names_[1] + " is in no superclass"),
            std::string::npos);
  EXPECT_NE(refused({.superclasses = superclasses("a = ['" + names_[0] + "', '0']")})
                .find("is in two superclasses"),
            std::string::npos);
  EXPECT_NE(refused({.superclasses = superclasses(names_[2] + " = ['0']")}).find("name of a class"),
            std::string::npos);
  EXPECT_NE(refused({{"1"}}, 2).find("--alpha=2"), std::string::npos);
}

TEST_F(AgainstJobTest, VotesThatWereStoppedEarlyAreRefused) {
  table_ = certify("radii.tsv", {{"certify.radii", "0.1"}});
  EXPECT_NE(refused({{"1"}}).find("stopped early (--radii)"), std::string::npos);
  const auto early = [&] {
    jobs::certify({.path = path("model.safetensors").string(),
                   .out = path("never.tsv").string(),
                   .against = {{"1"}}},
                  {{"data.name", "shapes"}, {"certify.radii", "0.1"}}, context_);
  };
  EXPECT_NE(refusal(early).find("--radii: not with --against"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("never.tsv")));
}

// The n0 votes set n, and enter no bound.
TEST_F(AgainstJobTest, APlannedNumberOfVotesIsFixed) {
  table_ = certify("plan.tsv", {{"certify.plan", "0.1"}});
  EXPECT_GT(rows({{"1"}}).certified[0].share.value, 0);
}

TEST_F(AgainstJobTest, RowsOfTwoCountsAndOfTooManyClassesAreRefused) {
  std::vector<CertificateRow> old = read_certificates(table_);
  for (CertificateRow& row : old) row.certificate.counts.votes.clear();
  write_like(table_, path("old.tsv"), old);
  std::vector<CertificateRow> beyond = read_certificates(table_);
  beyond[3].certificate.counts.selection.push_back({10, 1});
  beyond[3].n0 += 1;
  table_ = path("old.tsv");
  EXPECT_NE(refused({{"1"}}).find("has the votes of two classes only"), std::string::npos);
  write_like(table_, path("beyond.tsv"), beyond);
  EXPECT_NE(refusal([&] { read_certificates(path("beyond.tsv")); }).find("beyond.tsv:5: "),
            std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
