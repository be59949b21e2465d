#include "fedsmooth/jobs/fetch_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "fedsmooth/base/file.h"
#include "fedsmooth/base/md5.h"
#include "fedsmooth/jobs/curl.h"
#include "tests/data/archives.h"
#include "tests/folder.h"
#include "tests/jobs/file_server.h"
#include "tests/refusal.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

class FetchDataTest : public testing::Test {
 protected:
  FetchDataTest() {
    archive_ = make_gzip(make_tar({{"toy-bin/a.bin", "first"}, {"toy-bin/b.bin", "second"}}));
    labels_ = make_gzip("labels");
    set_ = {"toy",
            "idx",
            "toy-bin",
            {(root_ / "nowhere").string(), (root_ / "mirror").string()},
            {{"toy.tar.gz", md5(archive_)}, {"labels.gz", md5(labels_)}},
            {"a.bin", "b.bin", "labels"}};
    remove_folder(root_);
    write_file(root_ / "mirror" / "toy.tar.gz", archive_);
    write_file(root_ / "mirror" / "labels.gz", labels_);
  }
  ~FetchDataTest() override { remove_folder(root_); }

  FetchedData fetch(const std::string& from = "") const {
    return fetch_data(set_, {out_, from}, {});
  }
  /// What is in --out, hidden files too.
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    if (fs::exists(out_)) {
      for (const auto& entry : fs::directory_iterator(out_)) {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }
  void expect_whole() const {
    EXPECT_EQ(entries(), std::vector<std::string>{"toy-bin"});
    EXPECT_EQ(read_file(out_ / "toy-bin" / "a.bin"), "first");
    EXPECT_EQ(read_file(out_ / "toy-bin" / "b.bin"), "second");
    EXPECT_EQ(read_file(out_ / "toy-bin" / "labels"), "labels");
  }

  const fs::path root_ = fs::path(testing::TempDir()) /
                         fmt::format("fetch_data_test.{}.{}", ::getpid(),
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  const fs::path out_ = root_ / "data";
  std::string archive_, labels_;
  PublicSet set_;
};

TEST_F(FetchDataTest, TakesTheArchivesOfAFolder) {
  const FetchedData found = fetch((root_ / "mirror").string());
  EXPECT_EQ(found.folder, out_ / "toy-bin");
  EXPECT_TRUE(found.is_new);
  expect_whole();
}

TEST_F(FetchDataTest, TriesThePlacesInTheirOrder) {
  std::vector<std::string> warnings;
  Context context;
  context.warn = [&](const std::string& line) { warnings.push_back(line); };
  fetch_data(set_, {out_, ""}, context);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[0].find("nowhere/toy.tar.gz: no such file"), std::string::npos);
  expect_whole();
}

TEST_F(FetchDataTest, DownloadsFromAServer) {
  FileServer server(root_ / "mirror");
  if (!server.runs()) GTEST_SKIP() << "no curl or no python3 to serve files";
  EXPECT_TRUE(fetch(server.address() + "/").is_new);
  expect_whole();
  EXPECT_EQ(refusal([&] {
              fetch_data(set_, {root_ / "other", server.address() + "/none"}, {});
            }),
            server.address() +
                "/none/toy.tar.gz: cannot be downloaded: curl: (22) The requested URL "
                "returned error: 404");
  EXPECT_FALSE(fs::exists(root_ / "other" / "toy-bin"));
}

TEST_F(FetchDataTest, ASecondCallVerifiesWithoutTheArchives) {
  fetch();
  remove_folder(root_ / "mirror");
  EXPECT_FALSE(fetch().is_new);
  expect_whole();
}

TEST_F(FetchDataTest, WhatDiffersIsRefusedAndLeftAlone) {
  fetch();
  write_file(out_ / "toy-bin" / "b.bin", "mine");
  const std::string message = refusal([&] { fetch(); });
  EXPECT_TRUE(message.starts_with((out_ / "toy-bin" / "b.bin").string() +
                                  ": differs from the published file"))
      << message;
  EXPECT_EQ(read_file(out_ / "toy-bin" / "b.bin"), "mine");

  // The same for a folder that another unpacked: the archives are asked.
  fs::remove(out_ / "toy-bin" / "SHA256SUMS");
  fs::remove(out_ / "toy-bin" / "a.bin");
  EXPECT_EQ(refusal([&] { fetch(); }), message);
  EXPECT_FALSE(fs::exists(out_ / "toy-bin" / "a.bin"));
  fs::remove(out_ / "toy-bin" / "b.bin");
  fetch();
  expect_whole();
}

TEST_F(FetchDataTest, AnAlteredArchiveLeavesNothing) {
  write_file(root_ / "mirror" / "labels.gz", make_gzip("lables"));
  EXPECT_NE(refusal([&] { fetch(); }).find("labels.gz: MD5 is "), std::string::npos);
  EXPECT_TRUE(entries().empty());
}

TEST_F(FetchDataTest, AnArchiveWithoutAFileIsRefused) {
  set_.files.push_back("c.bin");
  EXPECT_EQ(refusal([&] { fetch(); }), "toy: its archives do not have c.bin");
  EXPECT_TRUE(entries().empty());
}

TEST_F(FetchDataTest, WhatAKillLeftIsRemoved) {
  write_file(out_ / ".toy-bin.unfinished" / "toy.tar.gz", "half");
  write_file(out_ / ".toy-bin.unfinished" / "files" / "a.bin", "half");
  fetch();
  expect_whole();
}

// A link in place of the hidden folder: what it leads to is neither emptied nor written to.
TEST_F(FetchDataTest, ALinkInPlaceOfItsFolderIsRefused) {
  const fs::path others = root_ / "others";
  write_file(others / "theirs", "x");
  write_file(others / "files" / "theirs", "x");
  fs::create_directories(out_);
  fs::create_directory_symlink(others, out_ / ".toy-bin.unfinished");
  EXPECT_EQ(refusal([&] { fetch(); }),
            (out_ / ".toy-bin.unfinished").string() + ": is there and not ours; remove it");
  EXPECT_TRUE(fs::exists(others / "theirs"));
  EXPECT_TRUE(fs::exists(others / "files" / "theirs"));
  EXPECT_EQ(std::distance(fs::directory_iterator(others), fs::directory_iterator()), 2);
}

TEST_F(FetchDataTest, OneCallAtATime) {
  fs::create_directories(out_);
  const FileLock other(out_ / "toy-bin");
  EXPECT_NE(refusal([&] { fetch(); }).find("another process is writing it"), std::string::npos);
}

TEST_F(FetchDataTest, StopsWhenAsked) {
  FileServer server(root_ / "mirror", FileServer::Kind::kSlow);
  if (!server.runs()) GTEST_SKIP() << "no curl or no python3 to serve files";
  Context context;
  int asked = 0;
  context.stopped = [&] { return ++asked > 3; };
  EXPECT_THROW(fetch_data(set_, {out_, server.address()}, context), Interrupted);
  EXPECT_TRUE(entries().empty());
}

// It states no length, so that curl before 8.4 does not see how much is coming.
TEST_F(FetchDataTest, AnAnswerWithoutAnEndIsGivenUp) {
  FileServer server(root_ / "mirror", FileServer::Kind::kEndless);
  if (!server.runs()) GTEST_SKIP() << "no curl or no python3 to serve files";
  const std::string address = server.address() + "/toy.tar.gz";
  const fs::path path = root_ / "toy.tar.gz";
  const std::string message = refusal([&] { download(address, path, 1'000'000, {}); });
  EXPECT_TRUE(message == address + ": is larger than 1000000 bytes; the download was given up" ||
              message.find("curl: (63)") != std::string::npos)
      << message;
}

// A program in place of curl that keeps its arguments.
TEST_F(FetchDataTest, HttpsIsNeverLeft) {
  write_file(root_ / "bin" / "curl", "#!/bin/sh\necho \"$@\" >> \"$0.said\"\n");
  fs::permissions(root_ / "bin" / "curl", fs::perms::owner_all);
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", ((root_ / "bin").string() + ":" + path).c_str(), 1);
  const auto said = [&](const std::string& address) {
    download(address, root_ / "file", 1000, {});
    const std::string words = read_file(root_ / "bin" / "curl.said");
    fs::remove(root_ / "bin" / "curl.said");
    return words;
  };
  const std::string secure = said("https://a.example/b"), plain = said("http://a.example/b");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_NE(secure.find(" --proto =https --proto-redir =https --max-filesize 1000 "),
            std::string::npos)
      << secure;
  EXPECT_NE(plain.find(" --proto-redir =http,https "), std::string::npos) << plain;
  for (const PublicSet& set : public_sets()) {
    for (const std::string& address : set.addresses) EXPECT_TRUE(address.starts_with("https://"));
  }
}

}  // namespace
}  // namespace fedsmooth::jobs
