// A reviewer's check of a table: honest ones pass, planted counts are found.
#include "fedsmooth/jobs/verify.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/file.h"
#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/smoothing/sequential.h"
#include "tests/identities.h"
#include "tests/jobs/job_folder.h"
#include "tests/nearest_mean.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class VerifyTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    const std::string model = path("model.safetensors").string();
    write_nearest_mean(model);
    table_ = jobs::certify(
        {.path = model}, {{"data.name", "shapes"}, {"certify.n", "1000"}, {"certify.every", "100"}},
        context_);
  }

  jobs::Verification verify(const jobs::VerifyArguments& a, const Overrides& overrides = {}) {
    return jobs::verify(a, overrides, context_);
  }
  jobs::Verification verify(int64_t images) {
    return verify({.table = table_.string(), .images = images}, {{"seed", "7"}});
  }

  // Claims `more` votes for the selected class of every row, and all that follows from them.
  void plant(int64_t more) {
    std::vector<CertificateRow> rows = read_certificates(table_);
    for (CertificateRow& row : rows) {
      Counts counts = row.certificate.counts;
      counts.votes.clear();
      counts.top = std::min(counts.n, counts.top + more);
      counts.runner_up = std::min(counts.runner_up, counts.n - counts.top);
      row.certificate =
          certificate_from_counts(counts, row.sigma, row.alpha, RadiusKind::kOneSided, kFloatNoise);
    }
    write_like(table_, path("planted.tsv"), rows);
    table_ = path("planted.tsv");
  }

  fs::path table_;
};

class SlowVerifyTest : public VerifyTest {};

TEST_F(VerifyTest, AnHonestTablePasses) {
  const jobs::Verification found = verify(5);
  EXPECT_EQ(found.rows, 20);
  EXPECT_EQ(found.seed, 7U);
  ASSERT_EQ(found.images.size(), 5U);
  double smallest = 1;
  for (const jobs::RedrawnImage& image : found.images) {
    EXPECT_EQ(image.stored_n, 1000);
    EXPECT_EQ(image.n, 1000);
    EXPECT_GT(image.top, 0);
    smallest = std::min(smallest, image.p_value);
  }
  EXPECT_EQ(found.p_value, std::min(1.0, 5 * smallest));
  EXPECT_TRUE(found.plausible());
  // The same seed chooses and draws the same.
  EXPECT_EQ(verify(5).p_value, found.p_value);
  EXPECT_EQ(verify(5).images[3].top, found.images[3].top);
}

// Every row follows from its counts; only new draws show that those are made up.
TEST_F(VerifyTest, PlantedCountsAreFound) {
  plant(300);
  EXPECT_TRUE(verify(0).plausible());
  const jobs::Verification found = verify(20);
  EXPECT_LT(found.p_value, 1e-10);
  EXPECT_FALSE(found.plausible());
}

// Votes that were stopped early are held against the radius that they are said to certify.
TEST_F(SlowVerifyTest, PlantedRadiiAreFound) {
  const Overrides options = {{"data.name", "shapes"},
                             {"certify.n", "5000"},
                             {"certify.every", "100"},
                             {"certify.radii", "0.05,0.1,0.2,0.3"}};
  const std::string model = path("model.safetensors").string();
  table_ = jobs::certify({.path = model, .out = path("radii.tsv").string()}, options, context_);
  EXPECT_TRUE(verify(20).plausible());
  EXPECT_GE(verify(1).p_value, 0.001);  // one false certificate is nothing unusual
  std::vector<CertificateRow> rows = read_certificates(table_);
  for (CertificateRow& row : rows) {
    Counts counts = row.certificate.counts;
    counts.top = counts.n = 5000;
    counts.runner_up = 0;
    counts.votes = {{counts.selected, 5000}};
    row.certificate = certificate_from_latches(counts, std::vector<Latch>(5, {5000, 5000}),
                                               row.radii, row.sigma, kFloatNoise);
  }
  write_like(table_, path("planted.tsv"), rows);
  table_ = path("planted.tsv");
  EXPECT_TRUE(verify(0).plausible());
  const jobs::Verification found = verify(20);
  EXPECT_LT(found.p_value, 1e-6);
  EXPECT_FALSE(found.plausible());
}

TEST_F(VerifyTest, ARowThatClaimsMoreThanItsCountsIsRefused) {
  std::string text = read_file(table_);
  std::vector<CertificateRow> rows = read_certificates(table_);
  const auto claimed =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return !row.abstained(); });
  const std::string honest = format_row(*claimed);
  claimed->certificate.radius += 0.01;
  text.replace(text.find(honest), honest.size(), format_row(*claimed));
  write_file(table_, text);
  expect_error([&] { verify(0); }, "radius_exact is above what its counts support");
}

TEST_F(VerifyTest, FewerVotesAndMoreImagesThanThereAre) {
  const jobs::Verification found =
      verify({.table = table_.string(), .images = 1000, .n = 200}, {{"seed", "7"}});
  EXPECT_EQ(std::ssize(found.images), found.rows);
  EXPECT_EQ(found.images[0].n, 200);
}

TEST_F(VerifyTest, TheSeedIsDrawnAndNeverTheTablesOwn) {
  const jobs::VerifyArguments a = {.table = table_.string(), .images = 1};
  EXPECT_NE(verify(a).seed, verify(a).seed);
  const std::string own = std::to_string(read_certificates(table_).at(0).seed);
  expect_error([&] { verify(a, {{"seed", own}}); }, "--seed=" + own + ": is the table's own");
}

TEST_F(VerifyTest, AnotherModelOrOtherDataAreRefused) {
  const fs::path other = path("other.safetensors");
  Model model = load_model(path("model.safetensors"));
  model.sigma += 0.01;
  write_file(other, format_model(model));
  expect_error([&] { verify({.table = table_.string(), .images = 1, .model = other.string()}); },
               "is about another model, with SHA-256 ");
  expect_error(
      [&] {
        verify({.table = table_.string(), .images = 1}, {{"data.held_out", "500"}});
      },
      "is about another data set, with SHA-256 ");
  expect_error(
      [&] {
        verify({.table = table_.string(), .images = 1}, {{"certify.sigma", "0.3"}});
      },
      "was made with sigma ");
}

TEST_F(VerifyTest, AModelThatIsGoneMustBeGiven) {
  fs::rename(path("model.safetensors"), path("moved.safetensors"));
  expect_error([&] { verify(1); }, "is not here; give --model");
  const std::string moved = path("moved.safetensors").string();
  EXPECT_EQ(verify({.table = table_.string(), .images = 2, .model = moved}).images.size(), 2U);
  EXPECT_EQ(verify(0).rows, 20);
}

TEST_F(VerifyTest, BadNumbersAndPublishedTablesAreRefused) {
  expect_error([&] { verify(-1); }, "--images=-1: must not be negative");
  expect_error([&] { verify({.table = table_.string(), .n = -5}); }, "--n=-5: must be between");
  write_file(path("p.tsv"), "idx\tlabel\tpredict\tradius\tcorrect\ttime\n");
  expect_error([&] { verify({.table = path("p.tsv").string()}); }, "is a published table");
}

}  // namespace
}  // namespace fedsmooth
