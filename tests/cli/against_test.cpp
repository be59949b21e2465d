// --against, --superclasses and --top, as a user runs them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/certify_program.h"

namespace fedsmooth {
namespace {

class AgainstProgramTest : public CertifyProgramTest {};

TEST_F(AgainstProgramTest, RecertifiesCertifiesAndReportsAgainstClasses) {
  const std::string table = path("t.tsv");
  const Outcome made = run(certify("--out " + table + " --against 3 --seed 1"));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_NE(made.out.find("g is never "), std::string::npos);
  EXPECT_NE(made.out.find("holds if the classes were chosen before"), std::string::npos);

  const Outcome again = run("--json recertify " + table + " --against 3");
  ASSERT_EQ(again.status, 0) << again.err;
  const auto summary = nlohmann::json::parse(again.out);
  EXPECT_EQ(summary["table"], path("t-against.tsv"));
  EXPECT_EQ(summary["alpha"], 0.001);
  EXPECT_TRUE(std::filesystem::exists(path("t-against.tsv")));
  expect_refused(run("recertify " + table + " --against 3"), "exists; choose another --out");
  expect_refused(run("recertify " + table + " --against 3 --radius multiclass --out x.tsv"),
                 "--radius=multiclass: not with --against");
  expect_refused(run("recertify " + table + " --against bird"), "is no class of the table");
  expect_refused(run("recertify " + table), "nothing to change; give --alpha");

  const Outcome report = run("--json report " + table + " --top 3 --out " + path("r.md"));
  ASSERT_EQ(report.status, 0) << report.err;
  const auto reported = nlohmann::json::parse(report.out)["against"][0];
  EXPECT_EQ(reported["images"], 20);
  EXPECT_NE(std::string(reported["claim"]).find("3 likeliest"), std::string::npos);
}

TEST_F(AgainstProgramTest, UnknownClassesAreRefusedBeforeTheFirstVote) {
  expect_refused(run(certify("--out " + path("t.tsv") + " --against bird")), "is no class");
  EXPECT_FALSE(std::filesystem::exists(path("t.tsv")));
}

}  // namespace
}  // namespace fedsmooth
