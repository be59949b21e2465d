#include "fedsmooth/records/group_columns.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/records/certificate_identity.h"
#include "tests/records/certificate_rows.h"

namespace fedsmooth {
namespace {

// Five groups, 1000 copies: 600 with gap 4, 300 with gap 2, 20 with gap 0 and 80 below.
CertificateRow group_row(int64_t malicious = 1) {
  CertificateRow row = example_row();
  row.malicious = malicious;
  row.cap = 1000;
  Counts counts = {.selected = 3, .n = 1000, .runner_up = 60, .gaps = {20, 0, 300, 0, 600, 0, 80}};
  counts.top = copies_safe_from(counts.gaps, malicious);
  row.certificate =
      certificate_from_counts(counts, row.sigma, row.alpha, RadiusKind::kOneSided, row.law());
  if (row.abstained()) row.label = 0;
  return row;
}

std::string table_of(const CertificateRow& row) { return certificate_header() + format_row(row); }

std::string table_with(const std::string& from, const std::string& to) {
  std::string line = format_row(group_row());
  const size_t at = line.rfind(from);
  EXPECT_NE(at, std::string::npos) << from;
  return certificate_header() + line.replace(at, from.size(), to);
}

TEST(GroupColumnsTest, RowsOfGroupsReadBack) {
  const CertificateRow row = group_row();
  EXPECT_EQ(row.certificate.counts.top, 900);
  EXPECT_TRUE(format_row(row).ends_with("\t1\t20,0,300,0,600,0,80\n")) << format_row(row);
  const CertificateRow read = parse_certificates(table_of(row), "c.tsv").at(0);
  EXPECT_EQ(format_row(read), format_row(row));
  EXPECT_EQ(read.malicious, 1);
  EXPECT_EQ(read.certificate.counts.gaps, row.certificate.counts.gaps);
  EXPECT_EQ(unsupported(read, RadiusKind::kOneSided), "");
}

TEST(GroupColumnsTest, TablesWithoutTheColumnsAreOfOneNetwork) {
  const auto cut = [](std::string line) {
    for (int i = 0; i < 4; ++i) line.resize(line.rfind('\t'));  // the votes of all classes too
    return line + "\n";
  };
  const CertificateRow read =
      parse_certificates(cut(certificate_header()) + cut(format_row(example_row())), "c.tsv").at(0);
  EXPECT_EQ(read.malicious, std::nullopt);
  EXPECT_TRUE(read.certificate.counts.gaps.empty());
}

TEST(GroupColumnsTest, HostileGapsAreRefusedInOneLine) {
  const std::string gaps = "20,0,300,0,600,0,80";
  const auto expect = [](const std::string& table, const std::string& why) {
    EXPECT_EQ(table_refusal(table), "c.tsv:2: " + why);
  };
  expect(table_with(gaps, "20,0,300,0,600,0,81"), "gaps do not add up to n");
  expect(table_with(gaps, "20,0,300,0,600,0,79"), "gaps do not add up to n");
  expect(table_with(gaps, "20,0,300,0,600,-1,81"), "gaps do not add up to n");
  expect(table_with(gaps, "9223372036854775807,9223372036854775807,2,0,0,0,0"),
         "gaps do not add up to n");
  expect(table_with(gaps, "20,0,300,0,600,0,80,0"), "gaps are out of range");  // of six groups
  expect(table_with(gaps, "1000"), "gaps are not those of 2 to 10000 groups");
  expect(table_with(gaps, "20,0,200,0,700,80,0"), "gaps are out of range");  // G, but not class 0
  expect(table_with(gaps, "20,0,300,0,600,"), "gaps must be a list of whole numbers");
  expect(table_with(gaps, "a"), "gaps must be a list of whole numbers");
  expect(table_with(gaps, ""), "gaps must be a list of whole numbers");
  expect(table_with(gaps, "120,0,200,0,600,0,80"), "count_top is not that of gaps and malicious");
  expect(table_with(gaps, "60,0,300,0,600,0,40"), "count_runner_up is above the gaps below 0");
  expect(table_with(gaps, "-"), "gaps must be a list where malicious is a number");
  expect(table_with("\t1\t" + gaps, "\t-\t" + gaps),
         "gaps must be - for one network, no votes or the rule radii");
  expect(table_with("\t1\t" + gaps, "\t3\t" + gaps), "malicious is above half of the groups");
  expect(table_with("\t1\t" + gaps, "\t9223372036854775807\t" + gaps),
         "malicious is above half of the groups");
  expect(table_with("\t1\t" + gaps, "\t-1\t" + gaps), "malicious must be a whole number or -");
  expect(table_with("\t1\t" + gaps, "\tx\t" + gaps), "malicious must be a whole number or -");
  std::string many = "1000";
  for (int i = 0; i < 20'000; ++i) many += ",0";
  expect(table_with(gaps, many), "gaps are too many");
}

TEST(GroupColumnsTest, ARowAgainstAnotherNumberHasTheCountOfItsGaps) {
  const CertificateRow row = group_row(1);
  for (const int64_t m : {0, 1, 2}) {
    EXPECT_EQ(format_row(against(row, m)), format_row(against(group_row(m), m))) << m;
    EXPECT_EQ(format_row(against(against(row, m), 1)), format_row(row)) << m;
  }
  EXPECT_GT(against(row, 0).certificate.radius, row.certificate.radius);
  EXPECT_LT(against(row, 2).certificate.radius, row.certificate.radius);
  EXPECT_EQ(against(row, 3).certificate.predict, kAbstain);
}

TEST(GroupColumnsTest, VotesStoppedEarlyProveNothingForOtherNumbers) {
  CertificateRow row = group_row();
  row.rule = VoteRule::kRadii;
  EXPECT_NE(refusal([&] { against(row, 2); }).find("stopped early"), std::string::npos);
  EXPECT_NE(refusal([&] { against(example_row(), 1); }).find("one network"), std::string::npos);
}

nlohmann::json group_identity() {
  CertificateIdentity i;
  i.members = {"a", "b", "b"};
  i.model_sha256 = digest_groups(*i.members);
  i.groups = 3;
  i.malicious = 1;
  i.seed_given = false;
  return i.to_json();
}

TEST(GroupColumnsTest, TwoGroupsMayHaveTheSameNetwork) {
  const nlohmann::json identity = group_identity();
  EXPECT_EQ(CertificateIdentity::from_json(identity, "c.json").to_json(), identity);
  EXPECT_EQ(digest_groups({"b", "a", "b"}), digest_groups({"a", "b", "b"}));
  EXPECT_NE(digest_groups({"a", "b"}), digest_groups({"a", "b", "b"}));
  EXPECT_NE(digest_groups({"a", "b"}), digest_members({"a", "b"}));
}

TEST(GroupColumnsTest, HostileIdentitiesAreRefused) {
  const auto refuse = [](const std::string& key, const nlohmann::json& value) {
    nlohmann::json identity = group_identity();
    if (value.is_null()) {
      identity.erase(key);
    } else {
      identity[key] = value;
    }
    return refusal([&] { CertificateIdentity::from_json(identity, "c.json"); });
  };
  EXPECT_NE(refuse("groups", 4).find("not a list of 4 SHA-256s"), std::string::npos);
  EXPECT_NE(refuse("groups", 1).find("\"groups\" must be from 2"), std::string::npos);
  EXPECT_NE(refuse("groups", nullptr).find("without \"groups\""), std::string::npos);
  EXPECT_NE(refuse("malicious", 2).find("at most half"), std::string::npos);
  EXPECT_NE(refuse("malicious", -1), "(nothing was refused)");
  EXPECT_NE(refuse("malicious", nullptr).find("at most half"), std::string::npos);
  EXPECT_NE(refuse("members", {"b", "a", "b"}).find("ascending order"), std::string::npos);
  EXPECT_NE(refuse("members", nullptr).find("ascending order"), std::string::npos);
  EXPECT_NE(refuse("model_sha256", "a").find("not that of its groups"), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
