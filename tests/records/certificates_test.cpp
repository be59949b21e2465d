#include "fedsmooth/records/certificates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <random>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "tests/records/certificate_rows.h"
#include "tests/smoothing/uniform_noise.h"

namespace fedsmooth {
namespace {

// A line of example_row() with one of its fields replaced.
std::string line_with(size_t column, const std::string& value) {
  std::string line = format_row(example_row());
  size_t begin = 0;
  for (size_t i = 0; i < column; ++i) begin = line.find('\t', begin) + 1;
  return line.replace(begin, line.find_first_of("\t\n", begin) - begin, value);
}

void expect_same_bits(double actual, double expected) {
  EXPECT_EQ(std::bit_cast<uint64_t>(actual), std::bit_cast<uint64_t>(expected)) << expected;
}

TEST(CertificatesTest, HeaderNamesTheColumnsInOrder) {
  EXPECT_EQ(certificate_header(),
            "idx\tlabel\tpredict\tradius\tcorrect\ttime\tselected\tn0\tn\tcount_top\t"
            "count_runner_up\tp_lower\talpha\tsigma\tradius_exact\tseed\tbase\tnoise\tshared\t"
            "rule\tcap\tbeta\tradii\tsubject\tvotes\tselection_votes\tmalicious\tgaps\n");
}

TEST(CertificatesTest, RowIsWrittenAsDocumented) {
  EXPECT_EQ(format_row(example_row()),
            "20\t3\t3\t1.90\t1\t1:02:05.000042\t3\t100\t100000\t100000\t0\t0.999930924833009\t"
            "0.001\t0.5\t1.905728281695\t18446744073709551615\tcpu fp32 batch 256\tfloat-2\t0\t"
            "fixed\t0\t0\t-\t-\t-\t-\t-\t-\n");
  CertificateRow row = example_row();
  row.certificate.counts.votes = {{3, 100'000}};
  row.certificate.counts.selection = {{0, 4}, {3, 95}};
  EXPECT_TRUE(format_row(row).ends_with("\t-\t3:100000\t0:4,3:95\t-\t-\n")) << format_row(row);
}

TEST(CertificatesTest, AbstentionIsWrittenAsInCohensLogs) {
  CertificateRow row = example_row();
  row.certificate.predict = kAbstain;
  row.certificate.radius = 0;
  EXPECT_TRUE(format_row(row).starts_with("20\t3\t-1\t0.0\t0\t")) << format_row(row);
}

TEST(CertificatesTest, RowsReadBackBitForBit) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::string text = certificate_header();
  std::vector<CertificateRow> rows;
  for (int i = 0; i < 1000; ++i) {
    CertificateRow row = example_row();
    row.index = i;
    row.seconds = static_cast<double>(random() % 10'000'000'000) / 1e6;
    row.alpha = std::max(uniform(random), 1e-300) * 0.5;
    row.sigma = uniform(random) + 1e-12;
    row.seed = random();
    row.certificate.p_lower = uniform(random);
    row.certificate.radius = uniform(random) * std::pow(10, static_cast<int>(random() % 20) - 16);
    text += format_row(row);
    rows.push_back(row);
  }
  const std::vector<CertificateRow> parsed = parse_certificates(text, "c.tsv");
  ASSERT_EQ(parsed.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    expect_same_bits(parsed[i].seconds, rows[i].seconds);
    expect_same_bits(parsed[i].alpha, rows[i].alpha);
    expect_same_bits(parsed[i].sigma, rows[i].sigma);
    expect_same_bits(parsed[i].certificate.p_lower, rows[i].certificate.p_lower);
    expect_same_bits(parsed[i].certificate.radius, rows[i].certificate.radius);
    EXPECT_EQ(format_row(parsed[i]), format_row(rows[i]));
  }
}

TEST(CertificatesTest, EveryFieldReadsBackIntoItsPlace) {
  CertificateRow row = example_row();
  row.certificate = {{7, 1000, 600, 250}, kAbstain, 0.46875, 0};
  row.certificate.counts.votes = {{0, 100}, {7, 600}, {999'999, 250}};
  row.certificate.counts.selection = {{0, 1}, {7, 40}, {8, 40}};
  row.noise = &kExactNoise;
  row.shared = true;
  const auto parsed = parse_certificates(certificate_header() + format_row(row), "c.tsv").at(0);
  EXPECT_EQ(parsed.index, 20);
  EXPECT_EQ(parsed.label, 3);
  EXPECT_EQ(parsed.n0, 100);
  EXPECT_EQ(parsed.seed, 18446744073709551615u);
  EXPECT_EQ(parsed.base, "cpu fp32 batch 256");
  EXPECT_EQ(parsed.certificate.predict, kAbstain);
  EXPECT_EQ(parsed.certificate.counts.selected, 7);
  EXPECT_EQ(parsed.certificate.counts.n, 1000);
  EXPECT_EQ(parsed.certificate.counts.top, 600);
  EXPECT_EQ(parsed.certificate.counts.runner_up, 250);
  EXPECT_EQ(parsed.certificate.counts.votes, row.certificate.counts.votes);
  EXPECT_EQ(parsed.certificate.counts.selection, row.certificate.counts.selection);
  EXPECT_FALSE(parsed.correct());
  EXPECT_TRUE(parsed.abstained());
  EXPECT_EQ(parsed.noise, &kExactNoise);
  EXPECT_TRUE(parsed.shared);
}

// Version 0.1 wrote both as the end of `base`.
TEST(CertificatesTest, TablesOfTheFirstVersionAreRead) {
  const auto old = [](std::string line) { return line.erase(line.find("\tfloat-2\t0")) + "\n"; };
  const std::string header =
      certificate_header().substr(0, certificate_header().find("\tnoise")) + "\n";
  CertificateRow row = example_row();
  const auto read = [&](const std::string& base) {
    row.base = base;
    return parse_certificates(header + old(format_row(row)), "c.tsv").at(0);
  };
  EXPECT_EQ(read("cpu").base, "cpu");
  EXPECT_EQ(read("cpu").noise, &kCutFloatNoise);
  EXPECT_FALSE(read("cpu").shared);
  EXPECT_EQ(read("cpu/exact-noise/noise-bank").base, "cpu");
  EXPECT_EQ(read("cpu/exact-noise/noise-bank").noise, &kExactNoise);
  EXPECT_TRUE(read("cpu/exact-noise/noise-bank").shared);
  EXPECT_TRUE(parse_certificates(header, "c.tsv").empty());
}

// A row says which law its votes were drawn under; a reader knows the law or refuses the row.
TEST(CertificatesTest, AnUnknownLawIsRefused) {
  CertificateRow row = example_row();
  row.noise = &kUniformNoise;
  EXPECT_EQ(table_refusal(certificate_header() + format_row(row)),
            "c.tsv:2: noise must be one of float-2, float, exact");
  row.noise = nullptr;
  EXPECT_THROW(format_row(row), Bug);
}

TEST(CertificatesTest, AVoidTableIsRefused) {
  const std::string table = certificate_header() + format_row(example_row());
  const std::string line = format_void("the model changed");
  EXPECT_TRUE(is_void(line));
  EXPECT_EQ(table_refusal(table + line),
            "c.tsv: is void: the model changed; certify again into another table");
  // Also one whose last line was cut off.
  EXPECT_NE(table_refusal(table + line.substr(0, line.size() - 3)).find("is void"),
            std::string::npos);
  EXPECT_NE(table_refusal(certificate_header() + line + format_row(example_row())).find("is void"),
            std::string::npos);
}

TEST(CertificatesTest, ARowClaimsNoMoreThanItsCountsSupport) {
  CertificateRow row = example_row();
  EXPECT_EQ(unsupported(row, RadiusKind::kOneSided), "");
  row.certificate.radius -= 1;
  EXPECT_EQ(unsupported(row, RadiusKind::kOneSided), "");
  row.certificate.radius = std::nextafter(1.9057282816950001, 2);  // another version of Boost
  EXPECT_EQ(unsupported(row, RadiusKind::kOneSided), "");
  row.certificate.radius += 1e-9;
  EXPECT_EQ(unsupported(row, RadiusKind::kOneSided),
            "radius_exact is above what its counts support");
  row = example_row();
  row.certificate.p_lower += 1e-9;
  EXPECT_EQ(unsupported(row, RadiusKind::kOneSided), "p_lower is above what its counts support");
  for (const double sigma : {1e-14, 1e14}) {  // the tolerance is of rounding, at any scale
    row.sigma = sigma;
    row.certificate = certificate_from_counts(row.certificate.counts, sigma, row.alpha,
                                              RadiusKind::kOneSided, row.law());
    row.certificate.radius *= 1 + 1e-15;
    EXPECT_EQ(unsupported(row, RadiusKind::kOneSided), "") << sigma;
    row.certificate.radius *= 50;
    EXPECT_NE(unsupported(row, RadiusKind::kOneSided), "") << sigma;
  }
  row = example_row();
  row.certificate.counts.top = 40'000;
  EXPECT_EQ(unsupported(row, RadiusKind::kOneSided), "its counts support no answer");
  row.certificate = {{3, 0, 0, 0}, 3, 0, 0};
  EXPECT_EQ(unsupported(row, RadiusKind::kOneSided), "");
  // The runner-up's votes make the multi-class radius larger than the one-sided one.
  row.certificate =
      certificate_from_counts({3, 1000, 600, 10}, 0.5, 0.001, RadiusKind::kMulticlass, kFloatNoise);
  EXPECT_EQ(unsupported(row, RadiusKind::kMulticlass), "");
  EXPECT_NE(unsupported(row, RadiusKind::kOneSided), "");
}

TEST(CertificatesTest, DescriptionThatWouldBreakTheTableIsABug) {
  CertificateRow row = example_row();
  row.base = "cpu\nfp32";
  EXPECT_THROW(format_row(row), Bug);
}

TEST(CertificatesTest, LastLineThatWasCutOffIsLeftOut) {
  const std::string first = line_with(0, "1"), second = line_with(0, "2");
  const std::string whole = certificate_header() + first + second;
  EXPECT_EQ(parse_certificates(whole, "c.tsv").size(), 2);
  for (size_t cut = 1; cut <= second.size(); ++cut) {
    EXPECT_EQ(parse_certificates(whole.substr(0, whole.size() - cut), "c.tsv").size(), 1) << cut;
  }
}

TEST(CertificatesTest, HeaderThatWasCutOffIsAnEmptyFile) {
  EXPECT_TRUE(parse_certificates("", "c.tsv").empty());
  EXPECT_TRUE(parse_certificates("idx\tlab", "c.tsv").empty());
  EXPECT_TRUE(parse_certificates(certificate_header(), "c.tsv").empty());
  EXPECT_NE(table_refusal("idx\tlab\n"), "(nothing was refused)");
}

TEST(CertificatesTest, RefusesAnotherTable) {
  EXPECT_EQ(table_refusal("idx\tlabel\tpredict\tradius\tcorrect\n1\t1\t1\t0.5\t1\n"),
            "c.tsv:1: not the header of a certificates.tsv; fedsmooth certify writes one");
}

TEST(CertificatesTest, ColumnsAreFoundByName) {
  const auto swap_last = [](std::string line) {  // malicious and gaps
    const size_t last = line.rfind('\t'), before = line.rfind('\t', last - 1);
    const std::string a = line.substr(before + 1, last - before - 1),
                      b = line.substr(last + 1, line.size() - last - 2);
    return line.substr(0, before + 1) + b + "\t" + a + "\n";
  };
  CertificateRow row = example_row();
  row.subject = "0123456789abcdef";
  row.certificate.counts.votes = {{3, 100'000}};
  const std::string line = format_row(row);
  const auto read = parse_certificates(swap_last(certificate_header()) + swap_last(line), "c.tsv");
  EXPECT_EQ(format_row(read.at(0)), line);
  const auto header_with = [](const std::string& from, const std::string& to) {
    std::string header = certificate_header();
    return header.replace(header.find(from), from.size(), to);
  };
  EXPECT_EQ(table_refusal(header_with("\tcap", "\tcolour")),
            "c.tsv:1: column \"colour\" is not known to this version");
  EXPECT_EQ(table_refusal(header_with("\tcap", "")), "c.tsv:1: column cap is missing");
  EXPECT_EQ(table_refusal(header_with("\talpha", "")), "c.tsv:1: column alpha is missing");
  EXPECT_EQ(table_refusal(header_with("\tcap", "\tcap\tcap")), "c.tsv:1: column cap occurs twice");
}

TEST(CertificatesTest, RowsOfTwoTablesAreRefused) {
  CertificateRow row = example_row();
  const std::string first = format_row(row);
  row.index = 7;
  row.subject = "0123456789abcdef";
  EXPECT_EQ(table_refusal(certificate_header() + first + format_row(row)),
            "c.tsv:3: subject is not that of the first row");
}

TEST(CertificatesTest, RefusalNamesFileLineAndColumn) {
  const std::string text = certificate_header() + line_with(0, "1") + line_with(8, "1e5");
  EXPECT_EQ(table_refusal(text), "c.tsv:3: n is \"1e5\", which is not a whole number");
}

TEST(CertificatesTest, RefusesTheSameImageTwice) {
  EXPECT_EQ(table_refusal(certificate_header() + line_with(0, "7") + line_with(0, "7")),
            "c.tsv:3: idx 7 occurs twice");
}

TEST(CertificatesTest, RefusesMissingAndExtraColumns) {
  EXPECT_EQ(table_refusal(certificate_header() + "1\t2\n"), "c.tsv:2: 2 columns instead of 28");
  EXPECT_EQ(table_refusal(certificate_header() + line_with(16, "a\tb")),
            "c.tsv:2: 29 columns instead of 28");
  EXPECT_EQ(table_refusal(certificate_header() + "\n"), "c.tsv:2: 1 columns instead of 28");
}

struct BadField {
  size_t column;
  std::string value;
  std::string message;
};

class CertificatesRefusalTest : public testing::TestWithParam<BadField> {};

TEST_P(CertificatesRefusalTest, RefusesTheField) {
  const auto& [column, value, message] = GetParam();
  ASSERT_EQ(table_refusal(certificate_header() + format_row(example_row())),
            "(nothing was refused)");
  const std::string what = table_refusal(certificate_header() + line_with(column, value));
  EXPECT_NE(what.find(message), std::string::npos) << what;
}

INSTANTIATE_TEST_SUITE_P(
    , CertificatesRefusalTest,
    testing::Values(
        BadField{0, "-1", "idx is out of range"}, BadField{0, "4294967296", "idx is out of range"},
        BadField{0, "", "idx is \"\""}, BadField{0, " 1", "whole number"},
        BadField{0, "99999999999999999999", "whole number"},
        BadField{1, "-1", "label is out of range"}, BadField{1, "1000000", "label is out of range"},
        BadField{2, "-2", "predict is out of range"}, BadField{2, "4", "not the selected class"},
        BadField{2, "-1", "correct does not follow"}, BadField{3, "1.91", "radius must lie"},
        BadField{3, "-1", "radius must lie"}, BadField{3, "1.9x", "finite number"},
        BadField{4, "0", "correct does not follow"}, BadField{4, "2", "correct does not follow"},
        BadField{5, "15.4", "duration"}, BadField{5, "0:60:00.000000", "duration"},
        BadField{5, "0:00:60.000000", "duration"}, BadField{5, "0:00:-1.000000", "duration"},
        BadField{5, "-1:00:00.000000", "duration"}, BadField{5, ":00:00.000000", "duration"},
        BadField{5, "99999999:00:00.000000", "duration"},
        BadField{6, "-2", "selected is out of range"}, BadField{6, "4", "not the selected class"},
        BadField{7, "0", "n0 must be from 1"}, BadField{8, "-1", "n must be from 0"},
        BadField{8, "4294967297", "n must be from 0"},
        BadField{8, "0", "only a wrong class is left without votes"},
        BadField{9, "100001", "count_top"}, BadField{9, "-1", "count_top"},
        BadField{10, "1", "count_runner_up"}, BadField{10, "-1", "count_runner_up"},
        BadField{10, "9223372036854775807", "count_runner_up"}, BadField{11, "1.1", "p_lower"},
        BadField{11, "-0.1", "p_lower"}, BadField{11, "nan", "finite number"},
        BadField{12, "0", "alpha"}, BadField{12, "1", "alpha"}, BadField{13, "0", "sigma"},
        BadField{13, "inf", "finite number"}, BadField{14, "-1e-9", "radius_exact"},
        BadField{14, "1e999", "finite number"}, BadField{14, "0x1p0", "finite number"},
        BadField{15, "-1", "whole number"}, BadField{15, "18446744073709551616", "whole number"},
        BadField{17, "exakt", "noise must be one of float-2, float, exact"},
        BadField{18, "2", "shared must be 0 or 1"}, BadField{23, "", "16 hexadecimal digits"},
        BadField{23, "0123456789ABCDEF", "16 hexadecimal digits"},
        BadField{24, "", "votes must be a list of CLASS:VOTES, or -"},
        BadField{24, "3", "a list of"}, BadField{24, "3:", "a list of"},
        BadField{24, "3:100000,", "a list of"}, BadField{24, "3:100000;", "a list of"},
        BadField{24, "3:1e5", "a list of"},
        BadField{24, "3:50000,3:50000", "ascending order, from 0 to 999999"},
        BadField{24, "4:1,3:100000", "ascending order"}, BadField{24, "-1:5", "ascending order"},
        BadField{24, "1000000:1", "ascending order"}, BadField{24, "3:0", "between 1 and 2^32"},
        BadField{24, "3:4294967297", "between 1 and 2^32"},
        BadField{24, "3:9223372036854775808", "a list of"},
        BadField{24, "3:100000,4:1", "votes add up to more than n"},
        BadField{24, "3:99999", "votes of the selected class are not count_top"},
        BadField{24, "4:100000", "votes of the selected class are not count_top"},
        BadField{25, "3:101", "selection_votes add up to more than n0"},
        BadField{25, "3:50,4:51", "selection_votes add up to more than n0"},
        BadField{25, "2:50,3:50", "selected is not the class with the most selection_votes"},
        BadField{25, "3", "selection_votes must be a list of CLASS:VOTES, or -"}));

TEST(CertificatesTest, RefusesVotesOfWhichTheRunnerUpDisagrees) {
  CertificateRow row = example_row();
  row.certificate = {{3, 1000, 600, 250}, kAbstain, 0.46875, 0};
  row.certificate.counts.votes = {{2, 250}, {3, 600}, {4, 100}};  // 50 were for nobody
  EXPECT_EQ(table_refusal(certificate_header() + format_row(row)), "(nothing was refused)");
  row.certificate.counts.votes = {{2, 249}, {3, 600}};
  EXPECT_EQ(table_refusal(certificate_header() + format_row(row)),
            "c.tsv:2: the most votes of another class are not count_runner_up");
}

TEST(CertificatesTest, AMillionClassesAreReadInASecond) {
  CertificateRow row = example_row();
  row.certificate = {{0, 2'000'000, 1'000'001, 1}, kAbstain, 0.46875, 0};
  row.certificate.counts.votes.push_back({0, 1'000'001});
  for (int64_t c = 1; c <= kMaxClass; ++c) row.certificate.counts.votes.push_back({c, 1});
  const std::string text = certificate_header() + format_row(row);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_certificates(text, "c.tsv").at(0).certificate.counts.votes,
            row.certificate.counts.votes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

// Version 0.3 kept the votes of two classes.
TEST(CertificatesTest, TablesWithoutVotesOfAllClassesAreRead) {
  const auto old = [](std::string line) { return line.erase(line.find("\tvotes")) + "\n"; };
  std::string line = format_row(example_row());
  line.replace(line.size() - 9, 9, "\n");  // these columns, and those of groups behind them
  const auto rows = parse_certificates(old(certificate_header()) + line, "c.tsv");
  EXPECT_TRUE(rows.at(0).certificate.counts.votes.empty());
  EXPECT_EQ(format_row(rows.at(0)), format_row(example_row()));
}

TEST(CertificatesTest, RefusesAnAbstentionWithARadius) {
  CertificateRow row = example_row();
  row.certificate.predict = kAbstain;
  EXPECT_EQ(table_refusal(certificate_header() + format_row(row)),
            "c.tsv:2: an abstention has no radius");
}

TEST(CertificatesTest, DamagedFilesAreRefusedOrReadButNeverCrash) {
  std::mt19937 random(2);
  const std::string whole = certificate_header() + line_with(0, "1") + line_with(0, "2");
  int refused = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    std::string text = whole;
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    refused += table_refusal(text) != "(nothing was refused)";
  }
  EXPECT_GT(refused, 5000);
}

TEST(CertificatesTest, RadiusIsCutToThreeDigits) {
  EXPECT_EQ(format_radius(0), "0.0");
  EXPECT_EQ(format_radius(1.90573), "1.90");
  EXPECT_EQ(format_radius(0.25), "0.250");
  EXPECT_EQ(format_radius(0.3), "0.300");
  EXPECT_EQ(format_radius(0.9999999), "0.999");
  EXPECT_EQ(format_radius(0.000123456), "0.000123");
  EXPECT_EQ(format_radius(1e-5), "0.0000100");
  EXPECT_EQ(format_radius(9.999e-6), "9.99e-06");
  EXPECT_EQ(format_radius(12.399), "12.3");
  EXPECT_EQ(format_radius(12399), "12300");
}

TEST(CertificatesTest, RadiusIsNeverRoundedUpAndLosesLessThanOnePercent) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> mantissa(1, 10), exponent(-9, 3);
  for (int i = 0; i < 200'000; ++i) {
    const double radius = mantissa(random) * std::pow(10, std::floor(exponent(random)));
    const double printed = std::stod(format_radius(radius));
    ASSERT_LE(printed, radius) << format_radius(radius);
    ASSERT_GT(printed, radius * 0.99) << format_radius(radius);
  }
}

TEST(CertificatesTest, RadiusWithThreeDigitsIsPrintedAsItIs) {
  for (int i = 100; i < 1000; ++i) {
    const double radius = i / 1000.0;
    EXPECT_EQ(std::stod(format_radius(radius)), radius);
  }
}

}  // namespace
}  // namespace fedsmooth
