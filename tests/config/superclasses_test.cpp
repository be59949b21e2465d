#include "fedsmooth/config/superclasses.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"

namespace fedsmooth {
namespace {

TEST(SuperclassesTest, ReadsListsOfClasses) {
  const auto found = parse_superclasses("animals = ['bird', 'cat']\nothers = [\"3\"]\n", "s.toml");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "animals");
  EXPECT_EQ(found[0].classes, (std::vector<std::string>{"bird", "cat"}));
  EXPECT_EQ(found[1].classes, (std::vector<std::string>{"3"}));
}

TEST(SuperclassesTest, RefusesWhatIsNoListWithItsLine) {
  const auto refused = [](const std::string& text) {
    return refusal([&] { parse_superclasses(text, "s.toml"); });
  };
  EXPECT_EQ(refused(""), "s.toml: names no superclass");
  EXPECT_EQ(refused("a = 'bird'"), "s.toml:1: a: must be a list of classes");
  EXPECT_EQ(refused("a = []"), "s.toml:1: a: must be a list of classes");
  EXPECT_EQ(refused("\na = ['x', 3]"), "s.toml:2: a: must be a list of classes, each in quotes");
  EXPECT_EQ(refused("a = ['x']\nb = ['x']"), "s.toml:2: b: \"x\" is there twice");
  EXPECT_EQ(refused("[a]\nb = ['x']").rfind("s.toml:1: a: ", 0), 0U);
  EXPECT_EQ(refused("a = [").rfind("s.toml", 0), 0U);
}

}  // namespace
}  // namespace fedsmooth
