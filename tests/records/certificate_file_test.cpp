#include "fedsmooth/records/certificate_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/sequential.h"
#include "tests/folder.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

CertificateIdentity example_identity();

CertificateRow row(int64_t index, int64_t top = 900) {
  CertificateRow made;
  made.noise = &kFloatNoise;
  made.index = index;
  made.n0 = 100;
  made.alpha = 0.001;
  made.sigma = 0.25;
  made.seed = 7;
  made.base = "cpu";
  made.subject = *example_identity().subject;
  made.certificate =
      certificate_from_counts({0, 1000, top, 50}, 0.25, 0.001, RadiusKind::kOneSided, kFloatNoise);
  return made;
}

CertificateIdentity example_identity() {
  CertificateIdentity identity;
  identity.model_sha256 = "abc";
  identity.data_sha256 = "def";
  identity.fingerprint = "123";
  identity.n0 = 100;
  identity.n = 1000;
  identity.alpha = 0.001;
  identity.sigma = 0.25;
  identity.seed = 7;
  identity.base = "cpu";
  identity.radius = RadiusKind::kOneSided;
  identity.only_correct = false;
  identity.noise = "float-2";
  identity.subject = digest_subject(identity);
  return identity;
}

const CertificateIdentity kIdentity = example_identity();
const json kSidecar = {{"identity", kIdentity.to_json()}};

class CertificateFileTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { remove_folder(folder_); }

  // What reading a table of these rows is refused for.
  std::string refusal_of(const CertificateRow& changed) {
    write_file(table_, certificate_header() + format_row(row(0)) + format_row(changed));
    write_file(sidecar_path(table_), kSidecar.dump());
    const std::string read = refusal([&] { read_certificates(table_); });
    EXPECT_EQ(refusal([&] { CertificateFile(table_, kIdentity, kSidecar, /*resume=*/true); }),
              read);
    return read;
  }

  fs::path folder_ =
      fs::temp_directory_path() / ("fedsmooth_certificate_file" + std::to_string(::getpid()));
  fs::path table_ = folder_ / "t.tsv";
};

TEST_F(CertificateFileTest, RowsAreReadBackAndContinued) {
  { CertificateFile(table_, kIdentity, kSidecar, false).append(row(0)); }
  EXPECT_EQ(read_certificates(table_).size(), 1U);
  {
    CertificateFile file(table_, kIdentity, kSidecar, /*resume=*/true);
    EXPECT_EQ(file.rows().size(), 1U);
    file.append(row(1));
  }
  EXPECT_EQ(read_certificates(table_).size(), 2U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(CertificateFileTest, RowsThatTheirCountsDoNotSupportAreRefused) {
  CertificateRow bad = row(1);
  bad.certificate.radius = 5.0;
  EXPECT_EQ(refusal_of(bad), table_.string() + ":3: radius_exact is above what its counts support");
}

// As version 0.1 wrote them: whatever the kind of radius, p_lower must follow from the counts.
TEST_F(CertificateFileTest, UnboundRowsWithoutAJsonAreHeldAgainstTheirCounts) {
  CertificateRow bad = row(1);
  bad.certificate.p_lower = 0.95;
  EXPECT_NE(refusal_of(bad), "");
  fs::remove(sidecar_path(table_));
  EXPECT_EQ(refusal([&] { read_certificates(table_); }),
            table_.string() + ": t.json, which says what its rows are about, is missing");
  std::string text = read_file(table_);
  for (size_t at; (at = text.find("\t" + *kIdentity.subject)) != std::string::npos;) {
    text.replace(at + 1, kIdentity.subject->size(), "-");
  }
  write_file(table_, text);
  EXPECT_EQ(refusal([&] { read_certificates(table_); }),
            table_.string() + ":3: p_lower is above what its counts support");
}

TEST_F(CertificateFileTest, AMulticlassRadiusInAOneSidedTableIsRefused) {
  CertificateRow bad = row(1);
  bad.certificate = certificate_from_counts({0, 1000, 600, 50}, 0.25, 0.001,
                                            RadiusKind::kMulticlass, kFloatNoise);
  ASSERT_GT(bad.certificate.radius, row(1, 600).certificate.radius);
  EXPECT_NE(refusal_of(bad).find("support"), std::string::npos);
}

TEST_F(CertificateFileTest, RowsOfAnotherMeasurementAreRefused) {
  const auto refused_for = [&](const char* column, const auto& change) {
    CertificateRow bad = row(1);
    change(bad);
    bad.certificate = certificate_from_counts(bad.certificate.counts, bad.sigma, bad.alpha,
                                              RadiusKind::kOneSided, kFloatNoise);
    EXPECT_EQ(refusal_of(bad), fmt::format("{}:3: {} is not that of the table's identity, in the "
                                           "JSON beside it",
                                           table_.string(), column));
  };
  refused_for("n0", [](CertificateRow& r) { r.n0 = 99; });
  refused_for("n", [](CertificateRow& r) { r.certificate.counts.n = 1001; });
  refused_for("alpha", [](CertificateRow& r) { r.alpha = 0.1; });
  refused_for("sigma", [](CertificateRow& r) { r.sigma = 0.5; });
  refused_for("seed", [](CertificateRow& r) { r.seed = 8; });
  refused_for("base", [](CertificateRow& r) { r.base = "cuda"; });
  refused_for("noise", [](CertificateRow& r) { r.noise = &kExactNoise; });
  refused_for("shared", [](CertificateRow& r) { r.shared = true; });
  refused_for("n", [](CertificateRow& r) {
    r.label = 1;  // wrong, so that it may do without votes, but not in this table
    r.certificate.counts = {0, 0, 0, 0};
  });
}

TEST_F(CertificateFileTest, RowsOfAnotherRuleAreRefused) {
  json sidecar = kSidecar;
  sidecar["identity"].update({{"radii", {0, 0.25}}, {"beta", 0.01}});
  CertificateRow good = row(0);
  good.rule = VoteRule::kRadii;
  good.cap = 1000;
  good.beta = 0.01;
  good.radii = {0, 0.25};
  good.certificate =
      certificate_from_latches({0, 400, 380, 20}, {{100, 100}}, good.radii, 0.25, kFloatNoise);
  const auto why = [&](const auto& change) {
    CertificateRow bad = good;
    change(bad);
    write_file(table_, certificate_header() + format_row(bad));
    write_file(sidecar_path(table_), sidecar.dump());
    const std::string found = refusal([&] { read_certificates(table_); });
    const std::string start = table_.string() + ":2: ";
    return found.substr(std::min(found.size(), start.size()),
                        found.find(" is not") - std::min(found.size(), start.size()));
  };
  EXPECT_EQ(why([](CertificateRow&) {}), "");
  EXPECT_EQ(why([](CertificateRow& r) { r.cap = 2000; }), "cap");
  EXPECT_EQ(why([](CertificateRow& r) { r.cap = 500; }), "");  // decided before n was raised
  EXPECT_EQ(why([](CertificateRow& r) { r.beta = 0.02; }), "beta");
  EXPECT_EQ(why([](CertificateRow& r) { r.radii = {0, 0.3}; }), "radii");
  EXPECT_EQ(why([](CertificateRow& r) {
              r = row(0);
              r.cap = 1000;
            }),
            "rule");
  sidecar["identity"]["radii"] = {"x"};
  EXPECT_NE(why([](CertificateRow&) {}), "");
}

TEST_F(CertificateFileTest, RowsOfAnotherModelAreRefused) {
  CertificateIdentity other = kIdentity;
  other.model_sha256 = "another";
  other.subject = digest_subject(other);
  CertificateRow of_other = row(0);
  of_other.subject = *other.subject;
  for (const std::string& subject : {*other.subject, std::string()}) {  // empty: of an older table
    of_other.subject = subject;
    write_file(table_, certificate_header() + format_row(of_other));
    write_file(sidecar_path(table_), kSidecar.dump());
    const std::string why =
        table_.string() + ":2: subject is not that of the table's identity, in the JSON beside it";
    EXPECT_EQ(refusal([&] { read_certificates(table_); }), why);
    EXPECT_EQ(refusal([&] { CertificateFile(table_, kIdentity, {}, /*resume=*/true); }), why);
  }
}

TEST_F(CertificateFileTest, UnboundTablesAreReadAndNotContinued) {
  CertificateIdentity older = kIdentity;
  older.subject = std::nullopt;
  CertificateRow unbound = row(0);
  unbound.subject.clear();
  write_certificates(table_, {unbound}, older, {});
  EXPECT_EQ(read_certificates(table_).size(), 1U);
  EXPECT_NE(refusal([&] {
              CertificateFile(table_, kIdentity, {}, /*resume=*/true);
            }).find("did not bind rows to model and data"),
            std::string::npos);
}

TEST_F(CertificateFileTest, SidecarsOfAWrongTypeAreRefused) {
  write_file(table_, certificate_header() + format_row(row(0)));
  const json wrong = {{"n", "many"},           {"alpha", "x"}, {"seed", -1},
                      {"radius", "l7"},        {"base", 5},    {"noise_bank", 1},
                      {"sigma", json::array()}};
  for (const auto& [key, value] : wrong.items()) {
    json sidecar = kSidecar;
    sidecar["identity"][key] = value;
    write_file(sidecar_path(table_), sidecar.dump());
    EXPECT_NE(refusal([&] { read_certificates(table_); }).find("\"" + key + "\""),
              std::string::npos)
        << key;
  }
  write_file(sidecar_path(table_), "{\"identity\": {\"a\": " + std::string(100'000, '['));
  EXPECT_NE(refusal([&] { read_certificates(table_); }).find("deep"), std::string::npos);
}

TEST_F(CertificateFileTest, AnUnknownNoiseLawIsRefusedByName) {
  write_file(table_, certificate_header() + format_row(row(0)));
  json sidecar = kSidecar;
  sidecar["identity"]["noise"] = "uniform";
  write_file(sidecar_path(table_), sidecar.dump());
  EXPECT_NE(refusal([&] { read_certificates(table_); }).find("uniform"), std::string::npos);
}

TEST_F(CertificateFileTest, AVoidTableStaysVoid) {
  {
    CertificateFile file(table_, kIdentity, kSidecar, false);
    file.append(row(0));
    file.append_void("it changed");
  }
  EXPECT_NE(refusal([&] { read_certificates(table_); }).find("is void"), std::string::npos);
  EXPECT_NE(refusal([&] { CertificateFile(table_, kIdentity, kSidecar, true); }).find("is void"),
            std::string::npos);
}

TEST_F(CertificateFileTest, ATableHasOneWriter) {
  CertificateFile first(table_, kIdentity, kSidecar, false);
  EXPECT_EQ(refusal([&] { CertificateFile(table_, kIdentity, kSidecar, true); }),
            table_.string() + ": another process is writing it; wait until it is done");
  EXPECT_EQ(refusal([&] { write_certificates(table_, {row(0)}, kIdentity, kSidecar); }),
            table_.string() + ": another process is writing it; wait until it is done");
  first.append(row(0));
  EXPECT_EQ(read_certificates(table_).size(), 1U);  // readers need not wait
}

TEST_F(CertificateFileTest, WhatAKillLeftIsRemovedWhenATableIsOpened) {
  const auto plant = [&] {
    for (const fs::path& path : {table_, sidecar_path(table_)}) {
      write_file(path.string() + ".tmp123", "half");
      write_file(path.string() + ".tmpl", "mine");
    }
  };
  const auto expect_swept = [&] {
    for (const fs::path& path : {table_, sidecar_path(table_)}) {
      EXPECT_FALSE(fs::exists(path.string() + ".tmp123"));
      EXPECT_TRUE(fs::exists(path.string() + ".tmpl"));
    }
  };
  plant();
  { CertificateFile made(table_, kIdentity, kSidecar, false); }
  expect_swept();
  plant();
  { CertificateFile resumed(table_, kIdentity, kSidecar, true); }
  expect_swept();
  plant();
  EXPECT_EQ(refusal([&] { write_certificates(table_, {row(0)}, kIdentity, kSidecar); }),
            table_.string() + ": exists; choose another --out");
  expect_swept();
  // Of what another process writes nothing is removed.
  const CertificateFile other(table_, kIdentity, kSidecar, true);
  plant();
  EXPECT_EQ(refusal([&] { CertificateFile(table_, kIdentity, kSidecar, true); }),
            table_.string() + ": another process is writing it; wait until it is done");
  EXPECT_TRUE(fs::exists(table_.string() + ".tmp123"));
}

TEST_F(CertificateFileTest, AJsonThatIsNotOursIsNeverOverwritten) {
  write_file(sidecar_path(table_), "{\"my\": \"data\"}");
  EXPECT_NE(refusal([&] {
              CertificateFile(table_, kIdentity, kSidecar, false);
            }).find("would be overwritten"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              write_certificates(table_, {row(0)}, kIdentity, kSidecar);
            }).find("overwritten"),
            std::string::npos);
  EXPECT_EQ(read_file(sidecar_path(table_)), "{\"my\": \"data\"}");
  EXPECT_FALSE(fs::exists(table_));
  // One of ours is what a kill left before its table was there.
  write_file(sidecar_path(table_), kSidecar.dump());
  EXPECT_NO_THROW(CertificateFile(table_, kIdentity, kSidecar, false));
}

}  // namespace
}  // namespace fedsmooth
