// Studies that keep their runs in an archive.
#include "fedsmooth/jobs/pages/kept_runs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "fedsmooth/base/file.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/jobs/report.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/data/archives.h"
#include "tests/jobs/job_folder.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class KeptRunsTest : public JobTest {
 protected:
  /// A study with these files in its archive.
  fs::path study(const NamedBytes& files) const {
    write_file(path("study") / "runs.tar.gz", make_gzip(make_tar(files)));
    return path("study");
  }

  /// A trained and certified run, kept in an archive as run "a".
  fs::path study_of_a_run() {
    jobs::train({small_experiment(), path("a")}, context_);
    jobs::certify({.path = path("a").string()}, {}, context_);
    NamedBytes files;
    for (const std::string name : {"experiment.toml", "provenance.json", "rounds.tsv",
                                   "clients.tsv", "certificates.tsv", "certificates.json"}) {
      files.emplace_back("a/" + name, read_file(path("a") / name));
    }
    return study(files);
  }
};

TEST_F(KeptRunsTest, ARunReadsTheSameFromAnArchive) {
  const fs::path kept = study_of_a_run();
  const RunRecord apart = jobs::load_run(path("a"));
  const std::vector<fs::path> names = {kept / "a", kept / "a" / "certificates.tsv"};
  for (const fs::path& name : names) {
    const RunRecord run = jobs::load_run(name);
    EXPECT_EQ(run.name, "a");
    EXPECT_EQ(run.rows.size(), apart.rows.size());
    EXPECT_EQ(run.rounds.size(), apart.rounds.size());
    EXPECT_EQ(run.clients.size(), apart.clients.size());
  }
  EXPECT_EQ(jobs::load_runs({"named=" + (kept / "a").string()})[0].name, "named");
}

TEST_F(KeptRunsTest, AReportOfTheFolderReadsTheArchive) {
  const fs::path kept = study_of_a_run();
  EXPECT_TRUE(jobs::holds_runs(kept));
  const auto runs = jobs::report({kept.string()}, path("table.md"), context_);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].name, "a");
  EXPECT_NE(read_file(path("table.md")).find("| a |"), std::string::npos);
}

TEST_F(KeptRunsTest, NothingStaysOfWhatWasUnpacked) {
  const fs::path kept = study({{"a/rounds.tsv", "x"}});
  fs::path folder;
  {
    const jobs::UnpackedRuns unpacked(kept / "runs.tar.gz");
    folder = unpacked.folder();
    EXPECT_EQ(read_file(folder / "a" / "rounds.tsv"), "x");
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(KeptRunsTest, ARunThatIsNotInTheArchiveIsRefused) {
  const fs::path kept = study({{"a/rounds.tsv", "x"}});
  expect_error([&] { jobs::load_run(kept / "b"); }, "runs.tar.gz: has no b");
  expect_error([&] { jobs::find_table(kept / "a"); }, "unpack that first");
}

TEST_F(KeptRunsTest, NamesThatLeadOutOfTheArchiveAreRefused) {
  for (const std::string name : {"../a", "a/../../b", "/tmp/a"}) {
    const fs::path kept = study({{"a/rounds.tsv", "x"}, {name, "y"}});
    expect_error([&] { jobs::UnpackedRuns(kept / "runs.tar.gz"); }, "leads out of it");
  }
}

/// Lines of results/tables.sha256: SHA-256, study, path in its folder or archive.
std::map<std::string, std::map<std::string, std::string>> kept_tables(const fs::path& results) {
  std::map<std::string, std::map<std::string, std::string>> studies;
  std::istringstream lines(read_file(results / "tables.sha256"));
  for (std::string digest, file; lines >> digest >> file;) {
    const size_t slash = file.find('/');
    studies[file.substr(0, slash)][file.substr(slash + 1)] = digest;
  }
  return studies;
}

TEST(ResultsTest, EveryKeptTableIsReadAndHasItsBytes) {
  const fs::path results = FEDSMOOTH_SOURCE "/results";
  size_t tables = 0;
  for (const auto& [study, files] : kept_tables(results)) {
    const fs::path archive = jobs::archive_in(results / study);
    std::optional<jobs::UnpackedRuns> unpacked;
    if (!archive.empty()) unpacked.emplace(archive);
    const fs::path folder = unpacked ? unpacked->folder() : results / study;
    for (const auto& [file, digest] : files) {
      EXPECT_EQ(sha256(read_file(folder / file)), digest) << study << "/" << file;
      EXPECT_FALSE(read_any_certificates(folder / file).empty()) << study << "/" << file;
      ++tables;
    }
  }
  EXPECT_GE(tables, 308U);
}

}  // namespace
}  // namespace fedsmooth
