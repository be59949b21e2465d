#include "fedsmooth/base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "fedsmooth/base/error.h"
#include "tests/folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { remove_folder(folder_); }

  fs::path folder_ =
      fs::temp_directory_path() / ("fedsmooth_file_test" + std::to_string(::getpid()));
};

TEST_F(FileTest, ReadsBackWrittenBytes) {
  const std::string bytes("a\0b\n", 4);
  write_file(folder_ / "deep" / "er" / "file", bytes);
  EXPECT_EQ(read_file(folder_ / "deep" / "er" / "file"), bytes);
}

TEST_F(FileTest, WritingReplacesAndLeavesNothingBehind) {
  write_file(folder_ / "file", "old and longer");
  write_file(folder_ / "file", "new");
  EXPECT_EQ(read_file(folder_ / "file"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, AMissingFileIsNamed) {
  try {
    read_file(folder_ / "missing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("missing: no such file"), std::string::npos);
  }
}

TEST_F(FileTest, RefusesToReadAFolder) { EXPECT_THROW(read_file(folder_), Error); }

TEST_F(FileTest, AFailedWriteLeavesTheOldContent) {
  // A folder in the way of the rename stands for any failure after the bytes were written.
  fs::create_directories(folder_ / "taken" / "inside");
  EXPECT_THROW(write_file(folder_ / "taken", "x"), Error);
  EXPECT_TRUE(fs::exists(folder_ / "taken" / "inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, WritingNeverFollowsALinkAtItsTemporaryName) {
  write_file(folder_ / "mine", "mine");
  // The names that a writer of this process would choose first.
  const std::string first = (folder_ / "file.tmp").string() + std::to_string(::getpid());
  fs::create_symlink(folder_ / "mine", first);
  write_file(folder_ / "file", "new");
  EXPECT_EQ(read_file(folder_ / "file"), "new");
  EXPECT_EQ(read_file(folder_ / "mine"), "mine");
  EXPECT_TRUE(fs::is_symlink(first));
}

TEST_F(FileTest, RemovesOnlyLeftoversOfWriting) {
  const std::vector<std::string> ours = {"a.tsv.tmp1", "a.tsv.tmp31415"};
  const std::vector<std::string> others = {"notes.tmpl.md", "a.tsv.tmp", "a.tsv.tmp3x",
                                           "b.tsv.tmp3", "xa.tsv.tmp3"};
  for (const auto& names : {ours, others}) {
    for (const std::string& name : names) write_file(folder_ / name, "x");
  }
  fs::create_directories(folder_ / "a.tsv.tmp77" / "inside");
  fs::create_symlink(folder_ / "notes.tmpl.md", folder_ / "a.tsv.tmp78");
  remove_unfinished(folder_, {"a.tsv", "c.tsv"});
  for (const std::string& name : ours) EXPECT_FALSE(fs::exists(folder_ / name)) << name;
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  EXPECT_TRUE(fs::exists(folder_ / "a.tsv.tmp77" / "inside"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "a.tsv.tmp78"));
}

TEST_F(FileTest, AFileHasOneWriterAtATime) {
  const fs::path file = folder_ / "t.tsv";
  {
    const FileLock lock(file);
    write_file(file, "replaced");  // the lock stays although the file is another one now
    EXPECT_THROW(FileLock{file}, Error);
  }
  const FileLock again(file);
}

TEST_F(FileTest, ALockRemovesItsFileAndTakesOverAfterAKill) {
  const fs::path file = folder_ / "t.tsv";
  { const FileLock lock(file); }
  EXPECT_TRUE(fs::is_empty(folder_));
  write_file(folder_ / "t.tsv.lock", "");  // as a kill leaves it
  const FileLock lock(file);
}

}  // namespace
}  // namespace fedsmooth
