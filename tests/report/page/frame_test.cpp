#include "fedsmooth/report/page/frame.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(FrameTest, EverySectionHasAnIdOfItsOwn) {
  Contents contents;
  EXPECT_EQ(contents.add("Certified accuracy"), "certified-accuracy");
  EXPECT_EQ(contents.add("certified ACCURACY!"), "certified-accuracy-2");
  EXPECT_EQ(contents.reserve("certified accuracy"), "certified-accuracy-3");
  EXPECT_EQ(contents.add("σ = ½"), "part");
  EXPECT_EQ(contents.add("\"><script>", 2), "script");
}

TEST(FrameTest, ContentsLinkToWhatWasAdded) {
  Contents contents;
  contents.add("Figures");
  contents.add("Figure <1>", 2);
  const std::string run = contents.reserve("run a");
  EXPECT_FALSE(contains(contents.render(), run));
  contents.link("a", run);
  EXPECT_EQ(contents.render(),
            "<nav aria-label=\"Contents\">\n<ul>\n"
            "<li class=\"level-1\"><a href=\"#figures\">Figures</a></li>\n"
            "<li class=\"level-2\"><a href=\"#figure-1\">Figure &lt;1&gt;</a></li>\n"
            "<li class=\"level-2\"><a href=\"#run-a\">a</a></li>\n</ul>\n</nav>\n");
}

TEST(FrameTest, TheTitleIsThatOfTheTabToo) {
  const std::string html = page({"a & b", "<p>lead</p>", "<nav></nav>", "body"});
  EXPECT_TRUE(contains(html, "<title>a &amp; b</title>"));
  EXPECT_TRUE(contains(html, "<h1>a &amp; b</h1>\n<p>lead</p>"));
}

}  // namespace
}  // namespace fedsmooth
