#include "fedsmooth/data/public_sets.h"

#include <gtest/gtest.h>

#include <set>

#include "fedsmooth/base/md5.h"
#include "fedsmooth/data/data_source.h"
#include "fedsmooth/data/tar.h"
#include "tests/data/archives.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

TEST(PublicSetsTest, EveryRowIsReadByAKnownSource) {
  std::set<std::string> names;
  for (const PublicSet& set : public_sets()) {
    EXPECT_TRUE(names.insert(set.name).second) << set.name;
    EXPECT_NO_THROW(data_sources().find(set.source)) << set.name;
    EXPECT_FALSE(set.addresses.empty());
    for (const PublicArchive& archive : set.archives) {
      EXPECT_EQ(archive.md5.size(), 32U);
      EXPECT_EQ(archive.md5.find_first_not_of("0123456789abcdef"), std::string::npos);
    }
  }
}

TEST(PublicSetsTest, UnpacksOnlyTheSetsFiles) {
  const std::string archive = make_gzip(make_tar({{"toy/a.bin", std::string(700, 'a')},
                                                  {"toy/readme.html", "<p>"},
                                                  {"../toy/b.bin", "elsewhere"},
                                                  {"toy/../b.bin", "elsewhere"},
                                                  {"toy/b.bin", "b"}}));
  const PublicSet set = {
      "toy", "idx", "toy", {}, {{"toy.tar.gz", md5(archive)}}, {"a.bin", "b.bin"}};
  const std::vector<UnpackedFile> files = unpack(set, set.archives[0], archive, "x");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "a.bin");
  EXPECT_EQ(files[0].bytes, std::string(700, 'a'));
  EXPECT_EQ(files[1].bytes, "b");
}

TEST(PublicSetsTest, RefusesAnotherDigest) {
  const PublicSet& mnist = public_sets().back();
  const std::string message =
      refusal([&] { unpack(mnist, mnist.archives[0], make_gzip("x"), "x.gz"); });
  EXPECT_TRUE(message.starts_with("x.gz: MD5 is ")) << message;
  EXPECT_NE(message.find("that of the published file f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            std::string::npos);
}

TEST(TarTest, RefusesCutsAndLinks) {
  const std::string archive = make_tar({{"a", std::string(600, 'x')}});
  EXPECT_EQ(list_tar(archive, "t").front().bytes.size(), 600U);
  // Up to the first block of zeros, which is the end.
  for (size_t size = 0; size < 512 + 1024 + 512; size += 64) {
    ASSERT_NE(refusal([&] { list_tar(archive.substr(0, size), "t"); })[0], '(') << size;
  }
  EXPECT_EQ(refusal([&] {
              list_tar(make_tar({{"a", ""}}, '2'), "t");
            }),
            "t: \"a\" is neither a file nor a folder");
  std::string altered = archive;
  altered[0] = 'b';
  EXPECT_EQ(refusal([&] { list_tar(altered, "t"); }),
            "t: not a whole tar archive: a header's sum is wrong; download it again");
}

TEST(TarTest, AHardLinkHasTheBytesOfAnEarlierFile) {
  const NamedBytes first = {{"a/clients.tsv", "rows"}};
  const std::string linked =
      make_tar(first).substr(0, 1024) + make_tar({{"b/clients.tsv", ""}}, '1', "a/clients.tsv");
  const std::vector<TarFile> files = list_tar(linked, "t");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].name, "b/clients.tsv");
  EXPECT_EQ(files[1].bytes, "rows");
  EXPECT_EQ(refusal([] {
              list_tar(make_tar({{"b", ""}}, '1', "a"), "t");
            }),
            "t: not a whole tar archive: a link leads to no file before it; download it again");
}

}  // namespace
}  // namespace fedsmooth
