#include "fedsmooth/report/attacked.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

CertificateRow certificate(int64_t index, int64_t predict, double radius) {
  CertificateRow row;
  row.noise = &kFloatNoise;
  row.index = index;
  row.label = 1;
  row.certificate.predict = predict;
  row.certificate.radius = radius;
  return row;
}

// Image 0 stands, 1 falls at 0.5, 2 is wrong from the start.
const std::vector<AttackRow> kRows = {{0, 1, 0, 1, 0}, {0, 1, 0.5, 1, 0.5},  {0, 1, 0.25, 1, 0.25},
                                      {1, 1, 0, 1, 0}, {1, 1, 0.25, 1, 0.2}, {1, 1, 0.5, 0, 0.4},
                                      {2, 1, 0, 0, 0}, {2, 1, 0.25, 0, 0.1}, {2, 1, 0.5, 1, 0.5}};

TEST(AttacksTest, RowsReadBack) {
  std::string text = attack_header();
  for (const AttackRow& row : kRows) text += format_attack(row);
  const auto rows = parse_attacks(text, "a.tsv");
  ASSERT_EQ(rows.size(), kRows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].index, kRows[i].index);
    EXPECT_EQ(rows[i].label, kRows[i].label);
    EXPECT_EQ(rows[i].epsilon, kRows[i].epsilon);
    EXPECT_EQ(rows[i].predict, kRows[i].predict);
    EXPECT_EQ(rows[i].perturbation, kRows[i].perturbation);
  }
}

TEST(AttacksTest, RefusesRowsThatCannotBe) {
  EXPECT_EQ(parse_attacks(attack_header() + "0\t1\t0.5\t1\t1\t0.5\n", "a").size(), 1);
  EXPECT_EQ(parse_attacks(attack_header() + "0\t1\t0.5\t1\t1\t0.5\n0\t", "a").size(), 1);
  for (const std::string line :
       {"0\t1\t0.5\t1\t0\t0.5\n", "0\t1\t0.5\t0\t1\t0.5\n", "0\t1\t-0.5\t1\t1\t0.5\n",
        "0\t1\t0.5\t1\t1\t-0.5\n", "0\t1\t0.5\t1\t2\t0.5\n", "0\t1\t0.5\t1\t1\n",
        "\t1\t0\t1\t1\t0\n"}) {
    EXPECT_EQ(refusal([&] { parse_attacks(attack_header() + line, "a"); }).find("a:2: "), 0U)
        << line;
  }
}

TEST(AttacksTest, AVoidTableIsRefused) {
  const std::string rows = attack_header() + "0\t1\t0.5\t1\t1\t0.5\n";
  for (const std::string& end : {std::string("\n"), std::string()}) {  // a kill cut it off
    EXPECT_EQ(refusal([&] { parse_attacks(rows + "void\tits answers changed" + end, "a.tsv"); }),
              "a.tsv: is void: its answers changed; attack again into another table");
  }
}

TEST(AttacksTest, AnImageOnceBrokenStaysBroken) {
  const auto curve = attacked_accuracy(kRows);
  ASSERT_EQ(curve.size(), 3);
  EXPECT_EQ(curve[0].radius, 0);
  EXPECT_NEAR(curve[0].accuracy, 2.0 / 3, 1e-12);
  EXPECT_EQ(curve[1].radius, 0.25);
  EXPECT_NEAR(curve[1].accuracy, 2.0 / 3, 1e-12);
  EXPECT_EQ(curve[2].radius, 0.5);
  EXPECT_NEAR(curve[2].accuracy, 1.0 / 3, 1e-12);
  EXPECT_THROW(attacked_accuracy({}), Error);
}

TEST(AttacksTest, BetweenTwoEpsilonsTheSmallerCounts) {
  const std::vector<CurvePoint> curve = {{0.25, 0.8}, {0.5, 0.6}};
  EXPECT_FALSE(attacked_at(curve, 0.2));
  EXPECT_EQ(attacked_at(curve, 0.25), 0.8);
  EXPECT_EQ(attacked_at(curve, 0.49), 0.8);
  EXPECT_EQ(attacked_at(curve, 0.5), 0.6);
  EXPECT_EQ(attacked_at(curve, 9), 0.6);
}

TEST(AttacksTest, ContradictionsAreImagesMisledWithinTheirRadius) {
  const auto broken = [](const std::vector<CertificateRow>& certificates) {
    return find_contradictions(certificates, kRows).broken;
  };
  EXPECT_EQ(broken({certificate(0, 1, 9)}), 0);     // stands
  EXPECT_EQ(broken({certificate(1, 1, 0.39)}), 0);  // falls, but further away
  EXPECT_EQ(broken({certificate(1, 1, 0.41)}), 1);  // the perturbation counts, not epsilon
  EXPECT_EQ(broken({certificate(1, 0, 0.6)}), 0);   // certified for a wrong class
  EXPECT_EQ(broken({certificate(1, kAbstain, 0)}), 0);
  EXPECT_EQ(broken({certificate(2, 1, 0.01)}), 1);  // wrong as it is
  EXPECT_EQ(broken({certificate(3, 1, 9)}), 0);     // never attacked
  const auto found = find_contradictions({certificate(1, 1, 9), certificate(3, 1, 9)}, kRows);
  EXPECT_EQ(found.images, 1);
  EXPECT_EQ(found.broken, 1);
}

}  // namespace
}  // namespace fedsmooth
