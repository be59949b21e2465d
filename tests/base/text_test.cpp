#include "fedsmooth/base/text.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

TEST(TextTest, ControlCharactersBecomeSpaces) {
  EXPECT_EQ(one_line(std::string("a\tb\nc\0d\x7f", 8)), "a b c d ");
}

TEST(TextTest, ValidUtf8StaysAsItIs) { EXPECT_EQ(one_line("σ = ½, 図, 𝛼"), "σ = ½, 図, 𝛼"); }

TEST(TextTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(one_line("a\xff"
                     "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(one_line("\xcf"), "\ufffd");                                // cut off
  EXPECT_EQ(one_line("\xc0\xaf"), "\ufffd\ufffd");                      // overlong slash
  EXPECT_EQ(one_line("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");            // surrogate
  EXPECT_EQ(one_line("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // beyond U+10FFFF
}

TEST(TextTest, LongTextKeepsBothEnds) {
  EXPECT_EQ(shorten("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten("abcdefghijk", 10), "abcd…ghijk");
  EXPECT_EQ(shorten("σσσσσσσσσ", 5), "σσ…σσ");
}

TEST(TextTest, EscapesHtml) {
  EXPECT_EQ(escape_html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
}

TEST(TextTest, QuotesWordsOfAShell) {
  EXPECT_EQ(shell_word("runs/a-b_c.toml"), "runs/a-b_c.toml");
  EXPECT_EQ(shell_word("--train.method=gaussian"), "--train.method=gaussian");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("~/x"), "'~/x'");
  EXPECT_EQ(shell_word("$HOME;"), "'$HOME;'");
}

}  // namespace
}  // namespace fedsmooth
