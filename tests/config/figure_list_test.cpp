#include "fedsmooth/config/figure_list.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"

namespace fedsmooth {
namespace {

// A figure without its name, which starts on line 1, with its panels on line 3.
std::string figure_with(const std::string& panels) {
  return "[[figure]]\ncaption = 'c'\npanels = [" + panels + "]\n";
}

constexpr const char* kPanel = "{title = 't', runs = 'a-*'}";

std::string figures_refusal(const std::string& text) {
  return refusal([&] { parse_figures(text, "f.toml"); });
}

TEST(FigureListTest, ReadsFiguresInTheirOrder) {
  const auto figures = parse_figures(R"(
[[figure]]
name = "figure-2"
caption = "Sigma = 0.5."
panels = [
  {title = "left", runs = "central-*"},
  {title = "right", runs = "*-0.5"},
]
[[figure]]
name = "Figure_1.a"
caption = ""
panels = [{title = "", runs = "*"}]
)",
                                     "f.toml")
                           .figures;
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].name, "figure-2");
  EXPECT_EQ(figures[0].caption, "Sigma = 0.5.");
  ASSERT_EQ(figures[0].panels.size(), 2U);
  EXPECT_EQ(figures[0].panels[1].title, "right");
  EXPECT_EQ(figures[0].panels[1].runs, "*-0.5");
  EXPECT_EQ(figures[1].name, "Figure_1.a");
}

TEST(FigureListTest, RefusesKeysByLine) {
  EXPECT_EQ(figures_refusal("\n[[figures]]\n"),
            "f.toml:2: unknown key \"figures\"; use title, labels, figure");
  EXPECT_EQ(figures_refusal(figure_with(kPanel) + "name = 'a'\nnmae = 'b'\n"),
            "f.toml:5: unknown key \"nmae\"; use name, caption, panels, title");
  EXPECT_EQ(figures_refusal(figure_with("\n{title = 't', run = 'a-*'}") + "name = 'a'\n"),
            "f.toml:4: unknown key \"run\"; use title, runs");
  EXPECT_EQ(figures_refusal(figure_with(kPanel)), "f.toml:1: name: is missing");
  EXPECT_EQ(figures_refusal(figure_with("\n{title = 't'}") + "name = 'a'\n"),
            "f.toml:4: runs: is missing");
  EXPECT_NE(figures_refusal("").find("figure: is missing"), std::string::npos);
}

TEST(FigureListTest, ReadsTitlesAndLabels) {
  const FigureList list =
      parse_figures("title = 'Our study'\n[labels]\n\"gamma0.1\" = 'γ = 0.1'\n" +
                        figure_with(kPanel) + "name = 'a'\ntitle = 'Figure A'\n",
                    "f.toml");
  EXPECT_EQ(list.title, "Our study");
  EXPECT_EQ(list.labels.at("gamma0.1"), "γ = 0.1");
  EXPECT_EQ(list.figures.at(0).title, "Figure A");
  EXPECT_TRUE(parse_figures("title = 'alone'", "f.toml").figures.empty());
  EXPECT_EQ(figures_refusal("labels = 3"), "f.toml:1: labels: must be a table of names and labels");
  EXPECT_EQ(figures_refusal("[labels]\na = 3"), "f.toml:2: a: must be a string");
  EXPECT_EQ(figures_refusal("[labels]\na = ''"), "f.toml:2: a: must not be empty");
}

TEST(FigureListTest, RefusesWrongTypesByLine) {
  EXPECT_EQ(figures_refusal("figure = 3"), "f.toml:1: figure: must be a list of tables");
  EXPECT_EQ(figures_refusal("figure = [\n3]"), "f.toml:2: figure: must be a list of tables");
  EXPECT_EQ(figures_refusal(figure_with(kPanel) + "name = 1\n"),
            "f.toml:4: name: must be a string");
  EXPECT_EQ(figures_refusal(figure_with("'a-*'") + "name = 'a'\n"),
            "f.toml:3: panels: must be a list of tables");
  EXPECT_EQ(figures_refusal(figure_with("{title = 't', runs = ['a-*']}") + "name = 'a'\n"),
            "f.toml:3: runs: must be a string");
  EXPECT_EQ(figures_refusal("\nname = ").rfind("f.toml:2: ", 0), 0U);
}

TEST(FigureListTest, RefusesNamesThatAreUnfitForFiles) {
  for (const std::string name : {"", "a/b", "a b", "ä", "a\\u0000"}) {
    EXPECT_NE(figures_refusal(figure_with(kPanel) + "name = \"" + name + "\"\n")
                  .find("must be of letters, digits"),
              std::string::npos)
        << name;
  }
  const std::string one = figure_with(kPanel) + "name = 'a'\n";
  EXPECT_EQ(figures_refusal(one + one), "f.toml:8: name: \"a\" is there twice");
}

TEST(FigureListTest, RefusesNoPanelsAndMoreThanSix) {
  EXPECT_EQ(figures_refusal(figure_with("") + "name = 'a'\n"),
            "f.toml:3: panels: must be a list of tables");
  std::string panels = kPanel;
  for (int i = 1; i < 6; ++i) panels += std::string(", ") + kPanel;
  EXPECT_EQ(parse_figures(figure_with(panels) + "name = 'a'\n", "f.toml").figures[0].panels.size(),
            6U);
  EXPECT_EQ(figures_refusal(figure_with(panels + ", " + kPanel) + "name = 'a'\n"),
            "f.toml:3: panels: 7, at most 6 fit");
}

TEST(FigureListTest, RunsHaveOneStar) {
  for (const std::string runs : {"a", "", "a-*-*", "**"}) {
    EXPECT_EQ(figures_refusal(figure_with("{title = 't', runs = '" + runs + "'}") + "name = 'a'\n"),
              "f.toml:3: runs: \"" + runs + "\" must have one *");
  }
}

TEST(FigureListTest, StarStandsForWhatIsLeftOfTheName) {
  EXPECT_EQ(match_star("a-*", "a-one-point"), "one-point");
  EXPECT_EQ(match_star("*-b", "a-b"), "a");
  EXPECT_EQ(match_star("a-*-c", "a-b-c"), "b");
  EXPECT_EQ(match_star("a*", "a"), "");
  EXPECT_EQ(match_star("a-*", "b-a-x"), std::nullopt);
  EXPECT_EQ(match_star("a-*-c", "a-b-cd"), std::nullopt);
  EXPECT_EQ(match_star("aba*aba", "ababa"), std::nullopt);  // they would overlap
}

}  // namespace
}  // namespace fedsmooth
