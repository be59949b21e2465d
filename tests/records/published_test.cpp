#include "fedsmooth/records/published.h"

#include <gtest/gtest.h>

#include <chrono>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

const std::string kHeader = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n";

std::string refusal(const std::string& text) {
  try {
    parse_published(text, "p.tsv");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PublishedTest, RowsAreReadAsTheyWerePrinted) {
  const auto rows = parse_published(kHeader +
                                        "0\t3\t3\t0.625\t1\t0:00:03.686402\n"
                                        "20\t8\t-1\t0.0\t0\t0:00:03\n"
                                        "40\t8\t1\t2.5e-05\t0\t12:00:03.000001",
                                    "p.tsv");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].index, 0);
  EXPECT_EQ(rows[0].label, 3);
  EXPECT_EQ(rows[0].certificate.radius, 0.625);
  EXPECT_EQ(rows[0].seconds, 3.686402);
  EXPECT_TRUE(rows[0].correct());
  EXPECT_TRUE(rows[1].abstained());
  EXPECT_EQ(rows[1].seconds, 3);
  EXPECT_EQ(rows[2].certificate.radius, 2.5e-05);
  EXPECT_EQ(rows[2].seconds, 43203.000001);
  for (const CertificateRow& row : rows) {
    EXPECT_TRUE(row.published);
    EXPECT_TRUE(row.estimated());
    EXPECT_EQ(row.sigma, 0);
    EXPECT_EQ(row.alpha, 0);
    EXPECT_EQ(row.certificate.counts.n, 0);
  }
}

TEST(PublishedTest, OnlyItsOwnHeaderIsOne) {
  EXPECT_TRUE(is_published(kHeader));
  EXPECT_FALSE(is_published(kHeader.substr(0, kHeader.size() - 1)));
  EXPECT_FALSE(is_published(certificate_header()));
  EXPECT_TRUE(parse_published(kHeader, "p.tsv").empty());
}

TEST(PublishedTest, HostileRowsAreRefusedWithTheirLine) {
  const std::string good = "0\t3\t3\t0.625\t1\t0:00:03.686402\n";
  const auto with = [&](const std::string& line) { return refusal(kHeader + good + line + "\n"); };
  EXPECT_EQ(with("1\t3\t3\tnan\t1\t0:00:03"),
            "p.tsv:3: radius is \"nan\", which is not a finite number");
  EXPECT_EQ(with("1\t3\t3\tinf\t1\t0:00:03"),
            "p.tsv:3: radius is \"inf\", which is not a finite number");
  EXPECT_EQ(with("1\t3\t3\t-0.5\t1\t0:00:03"), "p.tsv:3: radius must not be negative");
  EXPECT_EQ(with("0\t3\t3\t0.5\t1\t0:00:03"), "p.tsv:3: idx 0 occurs twice");
  EXPECT_EQ(with("1\t3\t3\t0.5\t1"), "p.tsv:3: 5 columns instead of 6");
  EXPECT_EQ(with("1\t3\t3\t0.5\t1\t0:00:03\t7"), "p.tsv:3: 7 columns instead of 6");
  EXPECT_EQ(with(""), "p.tsv:3: 1 columns instead of 6");
  EXPECT_EQ(with("1\t3\t4\t0.5\t1\t0:00:03"),
            "p.tsv:3: correct does not follow from predict and label");
  EXPECT_EQ(with("1\t3\t-1\t0.5\t0\t0:00:03"), "p.tsv:3: an abstention has no radius");
  EXPECT_EQ(with("1\t-3\t3\t0.5\t0\t0:00:03"), "p.tsv:3: label is out of range");
  EXPECT_EQ(with("-1\t3\t3\t0.5\t1\t0:00:03"), "p.tsv:3: idx is out of range");
  EXPECT_EQ(with("1\t3\t3000000\t0.5\t0\t0:00:03"), "p.tsv:3: predict is out of range");
  EXPECT_EQ(with("1.5\t3\t3\t0.5\t1\t0:00:03"),
            "p.tsv:3: idx is \"1.5\", which is not a whole number");
  EXPECT_EQ(with("1\t3\t3\t0.5\t1\tsoon"),
            "p.tsv:3: time is \"soon\", which is not a duration H:MM:SS or H:MM:SS.ffffff");
}

// A row that was cut off is not a shorter table.
TEST(PublishedTest, ARowThatWasCutOffIsRefused) {
  EXPECT_EQ(refusal(kHeader + "0\t3\t3\t0.6"), "p.tsv:2: 4 columns instead of 6");
}

TEST(PublishedTest, TenMillionRowsAreRefusedAtOnce) {
  const std::string row = "0\t3\t3\t0.625\t1\t0:00:03\n";
  std::string text = kHeader;
  for (int i = 0; i < 10'000'000; ++i) text += row;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(refusal(text), "p.tsv: has 10000001 lines; a table may have 1000000 rows");
  // A pass over the bytes; to parse the rows would take some ten times as long.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(PublishedTest, WhatNeedsCountsRefusesItByName) {
  try {
    parse_certificates(kHeader + "0\t3\t3\t0.625\t1\t0:00:03\n", "p.tsv");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "p.tsv: is a published table, without counts; report, plot and compare read it");
  }
}

}  // namespace
}  // namespace fedsmooth
