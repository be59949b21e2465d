#include "fedsmooth/report/names.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

TEST(NamesTest, SeparatesKeysFromTheirNumbers) {
  EXPECT_EQ(readable_name("rounds-gamma0.1-sun"), "rounds, gamma 0.1, sun");
  EXPECT_EQ(readable_name("learning_rate0.03-server_momentum0.9"),
            "learning rate 0.03, server momentum 0.9");
  EXPECT_EQ(readable_name("cat-rs-teacher_votes1000"), "cat-rs, teacher votes 1000");
  EXPECT_EQ(readable_name("homogeneous-every1-only_correct-one-point"),
            "homogeneous, every 1, only correct, one-point");
}

TEST(NamesTest, LeavesOtherNamesAlone) {
  for (const std::string name : {"smoothadv", "one-point", "resnet110", "ours-v2", "only_correct",
                                 "My run 3", "a/b-c", "", "-", "Ours, n = 4"}) {
    EXPECT_EQ(readable_name(name), name);
  }
}

TEST(NamesTest, TheLongestLabelledPartWins) {
  const std::map<std::string, std::string> labels = {
      {"cat", "Cat"}, {"cat-rs", "CAT-RS"}, {"rounds", "150 rounds"}, {"gamma0.1", "γ = 0.1"}};
  EXPECT_EQ(readable_name("rounds-gamma0.1-cat-rs", labels), "150 rounds, γ = 0.1, CAT-RS");
  EXPECT_EQ(readable_name("cat-macer", labels), "Cat, macer");
  EXPECT_EQ(readable_name("macer", labels), "macer");
  // A label stands for whole parts between dashes.
  EXPECT_EQ(readable_name("cats-rs", labels), "cats-rs");
}

}  // namespace
}  // namespace fedsmooth
