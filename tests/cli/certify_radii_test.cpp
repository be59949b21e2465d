// certify with a budget of votes (--radii, --plan), as a user runs it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/smoothing/sequential.h"
#include "tests/cli/certify_program.h"
#include "tests/identities.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

class CertifyRadiiTest : public CertifyProgramTest {
 protected:
  std::string radii(const std::string& more) const {
    return certify("--n 5000 --radii 0.1,0.25 --beta 0.01 " + more);
  }
  // Rows without their times.
  std::vector<std::string> rows(const std::string& table) const {
    return rows_without_times(path(table));
  }
  std::string out(const std::string& table) const { return "--out " + path(table) + " "; }
};

class SlowCertifyRadiiTest : public CertifyRadiiTest {};

TEST_F(CertifyRadiiTest, DecidesTheRadiiWithFewVotes) {
  ASSERT_EQ(run(radii(out("a.tsv"))).status, 0);
  ASSERT_EQ(run(certify("--n 100 " + out("fixed.tsv"))).status, 0);
  const auto found = read_certificates(path("a.tsv")), fixed = read_certificates(path("fixed.tsv"));
  ASSERT_EQ(found.size(), 20U);
  int64_t votes = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].rule, VoteRule::kRadii);
    EXPECT_EQ(found[i].radii, (std::vector<double>{0, 0.1, 0.25}));
    EXPECT_EQ(found[i].cap, 5000);
    EXPECT_EQ(found[i].beta, 0.01);
    EXPECT_EQ(found[i].noise, &kFloatNoise);
    EXPECT_EQ(found[i].certificate.counts.selected, fixed[i].certificate.counts.selected);
    votes += found[i].certificate.counts.n;
  }
  EXPECT_LT(votes, 20 * 5000 / 2);
  const auto summary = nlohmann::json::parse(run("--json " + radii(out("b.tsv"))).out);
  EXPECT_EQ(summary["images"], 20);
}

TEST_F(SlowCertifyRadiiTest, AnyThreadsShardsAndKillsLatchTheSame) {
  ASSERT_EQ(run(radii("--every 40 --threads 2 " + out("whole.tsv"))).status, 0);
  ASSERT_EQ(run(radii("--every 40 --threads 1 " + out("one.tsv"))).status, 0);
  EXPECT_EQ(rows("one.tsv"), rows("whole.tsv"));
  std::string parts;
  for (const std::string shard : {"1", "2"}) {
    ASSERT_EQ(run(radii("--every 40 --shard " + shard + "/2 " + out(shard + ".tsv"))).status, 0);
    parts += " " + path(shard + ".tsv");
  }
  ASSERT_EQ(run("merge" + parts + " " + out("merged.tsv")).status, 0);
  EXPECT_EQ(rows("merged.tsv"), rows("whole.tsv"));

  const std::string killed = radii("--every 40 --resume " + out("killed.tsv"));
  const pid_t child = start(killed);
  wait_for_rows(path("killed.tsv"), 1);
  ::kill(child, SIGKILL);
  finish(child);
  // In the middle of a wave, and of a row.
  const std::string text = read_file(path("killed.tsv"));
  const size_t third = text.find('\n', text.find('\n', text.find('\n') + 1) + 1);
  std::ofstream(path("killed.tsv")) << text.substr(0, third + 20);
  ASSERT_EQ(run(killed).status, 0);
  EXPECT_EQ(rows("killed.tsv"), rows("whole.tsv"));
}

// Votes that were not enough are continued; what is decided stays.
TEST_F(CertifyRadiiTest, ALargerNumberOfVotesContinuesATable) {
  ASSERT_EQ(run(radii("--n 300 " + out("few.tsv"))).status, 0);
  const auto few = read_certificates(path("few.tsv"));
  write_like(path("few.tsv"), path("more.tsv"), few);
  const std::string more_votes = radii("--n 1500 --resume ");
  ASSERT_EQ(run(more_votes + out("more.tsv")).status, 0);
  ASSERT_EQ(run(radii("--n 1500 " + out("whole.tsv"))).status, 0);
  const auto more = read_certificates(path("more.tsv")),
             whole = read_certificates(path("whole.tsv"));
  ASSERT_EQ(more.size(), few.size());
  int64_t further = 0;
  for (size_t i = 0; i < few.size(); ++i) {
    const Certificate &a = few[i].certificate, &b = more[i].certificate;
    further += b.latches.size() > a.latches.size();
    EXPECT_EQ(more[i].cap, b.counts.n == a.counts.n ? 300 : 1500);
    // 300 is one of the numbers of votes at which images are looked at.
    EXPECT_EQ(b.counts.n, whole[i].certificate.counts.n);
    EXPECT_EQ(b.counts.top, whole[i].certificate.counts.top);
    EXPECT_EQ(b.counts.runner_up, whole[i].certificate.counts.runner_up);
    EXPECT_EQ(b.latches.size(), whole[i].certificate.latches.size());
  }
  EXPECT_GT(further, 0);
  expect_refused(run(radii("--n 300 --resume " + out("more.tsv"))), "differs in n");

  // As a kill leaves it that comes after the JSON has the larger number.
  write_like(path("few.tsv"), path("killed.tsv"), few);
  change_identity(path("killed.tsv"), [](CertificateIdentity& i) { i.n = 1500; });
  ASSERT_EQ(run(more_votes + out("killed.tsv")).status, 0);
  EXPECT_EQ(rows("killed.tsv"), rows("more.tsv"));

  // Counts that do not come out again.
  auto planted = few;
  const auto weak = std::find_if(planted.begin(), planted.end(), [](const CertificateRow& row) {
    return row.certificate.counts.n == 300 && row.certificate.latches.size() < 3;
  });
  ASSERT_NE(weak, planted.end());
  ++weak->certificate.counts.top;
  weak->certificate.counts.runner_up = 0;
  weak->certificate.counts.votes.clear();
  write_like(path("few.tsv"), path("planted.tsv"), planted);
  expect_refused(run(more_votes + out("planted.tsv")), "of its first 300 votes");
}

TEST_F(CertifyRadiiTest, ATableKeepsItsRadii) {
  ASSERT_EQ(run(radii(out("a.tsv"))).status, 0);
  const std::string before = read_file(path("a.tsv"));
  const std::string resume = " --n 5000 --beta 0.01 --resume " + out("a.tsv");
  expect_refused(run(certify("--radii 0.1,0.25,0.3" + resume)), "radii");
  expect_refused(run(certify("--radii 0.1" + resume)), "radii");
  expect_refused(run(certify(resume)), "differs in beta: 0.01 there, unset here");
  expect_refused(run(radii("--beta 0.1 --resume " + out("a.tsv"))), "beta");
  EXPECT_EQ(read_file(path("a.tsv")), before);
  EXPECT_EQ(run(radii("--resume " + out("a.tsv"))).status, 0);
}

TEST_F(CertifyRadiiTest, RecertifiesByTheEvidence) {
  ASSERT_EQ(run(radii(out("a.tsv"))).status, 0);
  ASSERT_EQ(run("recertify " + path("a.tsv") + " --alpha 0.001 " + out("same.tsv")).status, 0);
  EXPECT_EQ(rows("same.tsv"), rows("a.tsv"));
  ASSERT_EQ(run("recertify " + path("a.tsv") + " --alpha 1e-8 " + out("less.tsv")).status, 0);
  const auto first = read_certificates(path("a.tsv")), less = read_certificates(path("less.tsv"));
  int64_t smaller = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const Certificate &a = first[i].certificate, &b = less[i].certificate;
    EXPECT_EQ(less[i].alpha, 1e-8);
    EXPECT_LE(b.latches.size(), a.latches.size());
    smaller += b.latches.size() < a.latches.size();
    EXPECT_TRUE(latches_hold(b.counts, b.latches, less[i].radii, less[i].sigma, 1e-8, kFloatNoise));
  }
  EXPECT_GT(smaller, 0);
  expect_refused(
      run("recertify " + path("a.tsv") + " --alpha 0.01 --radius multiclass " + out("m.tsv")),
      "stopped early");
}

// The rows are of votes that were stopped early: as if of a fixed number they would claim more.
TEST_F(CertifyRadiiTest, ClaimsBeyondTheEvidenceAreRefusedByAll) {
  ASSERT_EQ(run(radii(out("a.tsv"))).status, 0);
  auto planted = read_certificates(path("a.tsv"));
  const auto weak = std::find_if(planted.begin(), planted.end(), [](const CertificateRow& row) {
    return !row.abstained() && row.certificate.latches.size() < 3;
  });
  ASSERT_NE(weak, planted.end());
  const Counts counts = weak->certificate.counts;
  weak->certificate.latches.resize(3, {counts.top, counts.n});
  weak->certificate.radius = 0.25;
  write_like(path("a.tsv"), path("b.tsv"), planted);
  expect_refused_by_all(path("b.tsv"), "do not support");
}

TEST_F(CertifyRadiiTest, OnAGpuKilledAndResumedLatchesTheSame) {
  if (run(certify("--device cuda " + out("probe.tsv"))).status != 0) {
    GTEST_SKIP() << "no CUDA device";
  }
  const std::string gpu = radii("--device cuda --every 2 --n 1000000 --radii 0.1,0.25,0.3 ");
  ASSERT_EQ(run(gpu + out("whole.tsv")).status, 0);
  const pid_t child = start(gpu + "--resume " + out("killed.tsv"));
  wait_for_rows(path("killed.tsv"), 1);
  ::kill(child, SIGKILL);
  finish(child);
  // If it was done before the kill: in the middle of a wave.
  const std::string text = read_file(path("killed.tsv"));
  std::ofstream(path("killed.tsv")) << text.substr(0, text.size() / 2);
  ASSERT_EQ(run(gpu + "--resume " + out("killed.tsv")).status, 0);
  EXPECT_EQ(rows("killed.tsv"), rows("whole.tsv"));
}

TEST_F(CertifyRadiiTest, RefusesTheUsersMistakes) {
  expect_refused(run(certify("--radii 0.25,x " + out("a.tsv"))), "numbers with commas");
  expect_refused(run(certify("--radii=-0.25 " + out("a.tsv"))), "must not be negative");
  expect_refused(run(certify("--radii 0.5 --radius multiclass " + out("a.tsv"))), "multiclass");
  expect_refused(run(certify("--radii 0.5 --plan 0.02 " + out("a.tsv"))), "not together");
  expect_refused(run(certify("--radii 5 " + out("a.tsv"))), "cannot be certified by 1000 votes");
  expect_refused(run(certify("--radii 0.5 --beta 1 " + out("a.tsv"))), "between 0 and 1");
  expect_refused(run(certify("--plan=-1 " + out("a.tsv"))), "must not be negative");
  expect_refused(run(certify("--n 4294967297 " + out("a.tsv"))), "at most 4294967296");
  EXPECT_FALSE(std::filesystem::exists(path("a.tsv")));
}

TEST_F(SlowCertifyRadiiTest, PlansVotesPerImage) {
  ASSERT_EQ(run(certify("--plan 0.05 --n 8000 " + out("plan.tsv"))).status, 0);
  ASSERT_EQ(run(certify("--n 8000 --n0 1000 " + out("fixed.tsv"))).status, 0);
  const auto plan = read_certificates(path("plan.tsv")),
             fixed = read_certificates(path("fixed.tsv"));
  std::set<int64_t> numbers;
  int64_t votes = 0;
  for (size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(plan[i].rule, VoteRule::kPlan);
    EXPECT_EQ(plan[i].n0, 1000);
    EXPECT_EQ(plan[i].cap, 8000);
    numbers.insert(plan[i].certificate.counts.n);
    votes += plan[i].certificate.counts.n;
    EXPECT_EQ(plan[i].certificate.predict == kAbstain, fixed[i].certificate.predict == kAbstain);
    // Of a radius that 8000 votes find, 0.05 may be lost by the plan, and some by chance.
    EXPECT_GE(plan[i].certificate.radius, fixed[i].certificate.radius - 0.1);
  }
  EXPECT_GE(numbers.size(), 2U);
  EXPECT_LT(votes, 20 * 8000);
  // The counts are those of a fixed number of votes, whose bound holds at any alpha.
  EXPECT_EQ(run("recertify " + path("plan.tsv") + " --alpha 0.01 " + out("again.tsv")).status, 0);
  expect_refused(run(certify("--plan 0.02 --n 8000 --resume " + out("plan.tsv"))), "plan");
}

}  // namespace
}  // namespace fedsmooth
