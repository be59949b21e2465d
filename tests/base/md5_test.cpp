#include "fedsmooth/base/md5.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

TEST(Md5Test, GivesTheDigestsOfRfc1321) {
  EXPECT_EQ(md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
}

// One block holds 55 bytes beside the mark and the length.
TEST(Md5Test, PadsAtTheBordersOfBlocks) {
  const auto digest = [](size_t size) { return md5(std::string(size, 'a')); };
  EXPECT_EQ(digest(55), "ef1772b6dff9a122358552954ad0df65");
  EXPECT_EQ(digest(56), "3b0c8ac703f828b04c6c197006d17218");
  EXPECT_EQ(digest(63), "b06521f39153d618550606be297466d5");
  EXPECT_EQ(digest(64), "014842d480b571495a4a0363793f7367");
  EXPECT_EQ(digest(65), "c743a45e0d2e6a95cb859adae0248435");
  EXPECT_EQ(digest(119), "8a7bd0732ed6a28ce75f6dabc90e1613");
  EXPECT_EQ(digest(120), "5f61c0ccad4cac44c75ff505e1f1e537");
  EXPECT_EQ(digest(1'000'000), "7707d6ae4e027c70eea2a935c2296f21");
}

}  // namespace
}  // namespace fedsmooth
