#include "fedsmooth/records/tsv.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader = "a\tb\n";

std::vector<TsvRow> parse(std::string_view text) {
  std::vector<TsvRow> rows;
  parse_tsv(text, kHeader, "t.tsv", [&](const TsvRow& row) { rows.push_back(row); });
  return rows;
}

std::string refusal(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TsvTest, CellsAreNumbersOrEmpty) {
  const auto rows = parse("a\tb\n1\t-2.5e-3\n\t7\n");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].number(0, 0, 1), 1);
  EXPECT_EQ(rows[0].number(1, -1, 0), -2.5e-3);
  EXPECT_FALSE(rows[1].cells[0]);
  EXPECT_EQ(rows[1].whole(1, 7, 7), 7);
}

TEST(TsvTest, WhatAKillCutOffIsLeftOut) {
  EXPECT_TRUE(parse("").empty());
  EXPECT_TRUE(parse("a\t").empty());
  EXPECT_TRUE(parse("a\tb\n").empty());
  EXPECT_EQ(parse("a\tb\n1\t2\n3\t").size(), 1);
}

TEST(TsvTest, RefusesWhatIsNoTableWithItsLine) {
  EXPECT_EQ(refusal("a\tc\n1\t2\n"), "t.tsv:1: not the expected header");
  EXPECT_EQ(refusal("a\tb\n1\t2\n3\n"), "t.tsv:3: 1 columns, expected 2");
  EXPECT_EQ(refusal("a\tb\n1\t2\t3\n"), "t.tsv:2: 3 columns, expected 2");
  EXPECT_EQ(refusal("a\tb\n1\tx\n"), "t.tsv:2: \"x\" is not a number");
  EXPECT_EQ(refusal("a\tb\n1\t2 \n"), "t.tsv:2: \"2 \" is not a number");
  for (const std::string number : {"nan", "inf", "-inf", "1e999", "0x10", "1,5"}) {
    EXPECT_EQ(refusal("a\tb\n1\t" + number + "\n"), "t.tsv:2: \"" + number + "\" is not a number");
  }
}

TEST(TsvTest, ColumnsRefuseWhatIsOutOfRange) {
  const TsvRow row{{std::nullopt, 2.5, 3.0}, "t.tsv:2"};
  const auto refusal_of = [&](auto read) -> std::string {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal_of([&] { row.number(0, 0, 9); }), "t.tsv:2: column 1 is empty");
  EXPECT_EQ(refusal_of([&] { row.number(1, 0, 2); }), "t.tsv:2: 2.5 in column 2 is out of range");
  EXPECT_EQ(refusal_of([&] { row.whole(1, 0, 9); }),
            "t.tsv:2: 2.5 in column 2 is not a whole number");
  EXPECT_EQ(refusal_of([&] { row.whole(2, 0, 3); }), "no error");
}

}  // namespace
}  // namespace fedsmooth
