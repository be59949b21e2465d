#include "fedsmooth/records/certificate_columns.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

// With a value in every field that a column of all rows has.
CertificateIdentity example(double scale) {
  CertificateIdentity i;
  i.n0 = static_cast<int64_t>(100 * scale);
  i.n = static_cast<int64_t>(1000 * scale);
  i.alpha = 0.001 * scale;
  i.sigma = 0.25 * scale;
  i.seed = static_cast<uint64_t>(7 * scale);
  i.base = fmt::format("cpu-{}", scale);
  i.noise = scale > 1 ? "exact" : "float-2";
  i.noise_bank = scale > 1;
  if (scale == 1) i.radii = {0, 0.25};
  i.beta = 0.01 * scale;
  i.subject = fmt::format("subject-{}", scale);
  i.malicious = static_cast<int64_t>(scale);
  return i;
}

TEST(CertificateColumnsTest, ARowOfAnIdentityFitsIt) {
  const CertificateIdentity identity = example(1);
  EXPECT_EQ(column_difference(row_of(identity), identity), "");
  EXPECT_EQ(row_of(identity).rule, VoteRule::kRadii);
  EXPECT_EQ(&row_of(identity).law(), &kFloatNoise);
}

// Each column that all rows share is taken from the identity, and compared with it.
TEST(CertificateColumnsTest, EveryColumnThatRowsShareIsCompared) {
  const CertificateIdentity here = example(1), there = example(2);
  std::vector<std::string_view> compared;
  for (const Column& column : certificate_columns()) {
    CertificateRow row = row_of(here);
    const std::string before = column.show(row);
    column.statement.share(row, there);
    if (column.show(row) == before) continue;
    EXPECT_EQ(column_difference(row, here), column.name);
    compared.push_back(column.name);
  }
  EXPECT_EQ(compared, (std::vector<std::string_view>{"n0", "alpha", "sigma", "seed", "base",
                                                     "noise", "shared", "rule", "cap", "beta",
                                                     "radii", "subject", "malicious"}));
}

TEST(CertificateColumnsTest, WhatAnIdentityLeavesOutIsNotCompared) {
  CertificateRow row;
  row.noise = &kCutFloatNoise;  // the only law of identities without one
  row.n0 = 5;
  row.alpha = 0.5;
  row.sigma = 3;
  row.seed = 9;
  row.base = "gpu";
  row.beta = 0.5;
  row.certificate.counts.n = 77;
  EXPECT_EQ(column_difference(row, CertificateIdentity{}), "");
}

TEST(CertificateColumnsTest, VotesAndGapsStayWithinTheIdentity) {
  CertificateIdentity identity = example(1);
  identity.classes = 3;
  identity.groups = 2;
  const auto difference = [&](const auto& change) {
    CertificateRow row = row_of(identity);
    change(row.certificate.counts);
    return column_difference(row, identity);
  };
  EXPECT_EQ(difference([](Counts& c) { c.votes = {{2, 10}}; }), "");
  EXPECT_EQ(difference([](Counts& c) { c.votes = {{3, 10}}; }), "votes");
  EXPECT_EQ(difference([](Counts& c) { c.selection = {{3, 10}}; }), "selection_votes");
  EXPECT_EQ(difference([](Counts& c) { c.gaps = {1, 2, 3, 4}; }), "");
  EXPECT_EQ(difference([](Counts& c) { c.gaps = {1, 2, 3, 4, 5}; }), "gaps");
}

}  // namespace
}  // namespace fedsmooth
