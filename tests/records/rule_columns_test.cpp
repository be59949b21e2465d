#include "fedsmooth/records/rule_columns.h"

#include <gtest/gtest.h>

#include "fedsmooth/smoothing/sequential.h"
#include "tests/records/certificate_rows.h"

namespace fedsmooth {
namespace {

// Before there were rules, all votes were of a fixed number, with noise that was cut off.
TEST(RuleColumnsTest, TablesWithoutARuleAreRead) {
  std::string header = certificate_header(), line = format_row(example_row());
  header = header.substr(0, header.find("\trule")) + "\n";
  line.replace(line.find("\tfloat-2\t0"), std::string::npos, "\tfloat\t0\n");
  const CertificateRow row = parse_certificates(header + line, "c.tsv").at(0);
  EXPECT_EQ(row.rule, VoteRule::kFixed);
  EXPECT_EQ(row.noise, &kCutFloatNoise);
  EXPECT_EQ(row.cap, row.certificate.counts.n);
}

// 0.25 was certified by 119 of 120 votes, 0.5 was given up.
CertificateRow row_of_radii() {
  CertificateRow row = example_row();
  row.sigma = 0.25;
  row.rule = VoteRule::kRadii;
  row.cap = 100'000;
  row.beta = 0.01;
  row.radii = {0, 0.25, 0.5};
  row.certificate = certificate_from_latches({3, 500, 480, 15}, {{100, 100}, {119, 120}}, row.radii,
                                             row.sigma, kFloatNoise);
  return row;
}

TEST(RuleColumnsTest, RowsOfGivenRadiiReadBack) {
  const CertificateRow row = row_of_radii();
  const std::string line = format_row(row);
  EXPECT_NE(line.find("\tradii\t100000\t0.01\t0@100/100,0.25@119/120,0.5\t-\t-\t-\t-\t-\n"),
            std::string::npos)
      << line;
  const auto parsed = parse_certificates(certificate_header() + line, "c.tsv").at(0);
  EXPECT_EQ(format_row(parsed), line);
  EXPECT_EQ(parsed.certificate.radius, 0.25);
  EXPECT_EQ(parsed.radii, row.radii);
  EXPECT_EQ(parsed.certificate.latches.size(), 2U);
  EXPECT_EQ(unsupported(parsed, RadiusKind::kOneSided), "");
}

// 480 of 500 votes support 0.3 if their number was fixed; stopped early they do not.
TEST(RuleColumnsTest, RowsOfGivenRadiiClaimNoMoreThanTheirLatches) {
  const auto why = [](const auto& change) {
    CertificateRow row = row_of_radii();
    change(row);
    return std::string(unsupported(row, RadiusKind::kOneSided));
  };
  const std::string no_support = "the counts at which its radii were certified do not support them";
  EXPECT_EQ(why([](CertificateRow& r) { r.certificate.latches[1] = {110, 120}; }), no_support);
  EXPECT_EQ(why([](CertificateRow& r) { r.certificate.latches[1] = {481, 481}; }), no_support);
  EXPECT_EQ(why([](CertificateRow& r) {
              r.certificate.latches.push_back({480, 500});
            }),
            no_support);
  EXPECT_EQ(why([](CertificateRow& r) { r.alpha = 1e-9; }), no_support);
  EXPECT_EQ(why([](CertificateRow& r) { r.sigma = 0.15; }), no_support);
  EXPECT_NE(why([](CertificateRow& r) { r.certificate.p_lower += 0.01; }), "");
}

TEST(RuleColumnsTest, RowsOfGivenRadiiThatContradictThemselvesAreRefused) {
  const std::string line = format_row(row_of_radii());
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bad = line;
    bad.replace(bad.find(from), from.size(), to);
    return table_refusal(certificate_header() + bad);
  };
  const auto says = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  EXPECT_TRUE(says(refused("0@100/100,0.25", "0.1@100/100,0.25"), "begin with 0 and rise"));
  EXPECT_TRUE(says(refused(",0.5\t", ",0.2\t"), "begin with 0 and rise"));
  EXPECT_TRUE(says(refused(",0.5\t", ",nan\t"), "begin with 0 and rise"));
  EXPECT_TRUE(says(refused("@119/120", "@119"), "RADIUS@COUNT/VOTES"));
  EXPECT_TRUE(says(refused("0@100/100,", "0,"), "RADIUS@COUNT/VOTES"));  // not the first ones
  EXPECT_TRUE(says(refused("0@100/100,0.25@119/120,0.5", ""), "RADIUS@COUNT/VOTES"));
  EXPECT_TRUE(says(refused("0.25@119/120", "0.25"), "largest certified"));
  EXPECT_TRUE(says(refused("\tradii\t", "\tfixed\t"), "must be - unless"));
  EXPECT_TRUE(says(refused("\tradii\t", "\tsome\t"), "rule must be"));
  EXPECT_TRUE(says(refused("\t100000\t0.01\t", "\t400\t0.01\t"), "above cap"));
  EXPECT_TRUE(says(refused("\t100000\t0.01\t", "\t100000\t0\t"), "beta"));
}

}  // namespace
}  // namespace fedsmooth
