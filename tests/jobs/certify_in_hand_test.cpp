// A table of a classifier and images that the caller has: the guards and the rows of `certify`.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/file.h"
#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/identities.h"
#include "tests/jobs/job_folder.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

const Sizes kShape = {3, 4, 4};
constexpr int64_t kValues = 48;

// Images of one grey level each, as bytes; labels alternate.
Dataset grey_images(int64_t count) {
  Dataset data{Array({count, kShape[0], kShape[1], kShape[2]}, Array::Type::kByte), {}, {"a", "b"}};
  auto* bytes = static_cast<uint8_t*>(data.images.data());
  for (int64_t i = 0; i < count; ++i) {
    std::fill_n(bytes + i * kValues, kValues, static_cast<uint8_t>(60 + 20 * i));
    data.labels.push_back(i % 2);
  }
  return data;
}

Classifier brighter_than_half() {
  Array grey({kShape[0], kShape[1], kShape[2]});
  std::fill_n(grey.floats(), kValues, 0.5F);
  return half_space(kValues, grey);
}

CertificationOptions few_votes() {
  CertificationOptions options;
  options.n = 200;
  options.sigma = 0.25;
  options.seed = 11;
  return options;
}

class CertifyInHandTest : public JobTest {
 protected:
  static jobs::ClassifierInHand in_hand(const Classifier& f) {
    return {std::make_shared<SerialSampler>(fixed_batch(f, 2), kFloatNoise), "half-space", ""};
  }
  static jobs::ImagesInHand images(int64_t count) {
    jobs::ImagesInHand picked{grey_images(count), {}, "grey", ""};
    for (int64_t i = 0; i < count; ++i) picked.indices.push_back(10 * i);
    return picked;
  }
  void certify(const jobs::ImagesInHand& some, bool resume = false,
               const CertificationOptions& options = few_votes()) {
    jobs::certify_in_hand(in_hand(brighter_than_half()), some, options, table_, resume, context_);
  }
  void expect_refused(const jobs::ImagesInHand& some, const std::string& why) {
    expect_error([&] { certify(some); }, why);
    EXPECT_FALSE(std::filesystem::exists(table_));
  }

  void SetUp() override {
    JobTest::SetUp();
    table_ = path("t.tsv");
  }

  std::filesystem::path table_;
};

TEST_F(CertifyInHandTest, RowsAreThoseOfCertifyWithTheImagesOwnIndices) {
  const jobs::ImagesInHand some = images(5);
  certify(some);
  const std::vector<CertificateRow> rows = read_certificates(table_);
  ASSERT_EQ(rows.size(), 5U);
  SerialSampler sampler(fixed_batch(brighter_than_half(), 2), kFloatNoise);
  for (int64_t i = 0; i < 5; ++i) {
    const auto alone = certify_all(sampler, {{some.images.image(i), static_cast<uint32_t>(10 * i)}},
                                   0.25, few_votes(), 11);
    EXPECT_EQ(rows[i].index, 10 * i);
    EXPECT_EQ(rows[i].label, i % 2);
    EXPECT_EQ(rows[i].certificate.counts.top, alone.front().counts.top);
    EXPECT_EQ(rows[i].certificate.radius, alone.front().radius);
  }
  const nlohmann::json identity = read_sidecar(table_)["identity"];
  EXPECT_EQ(identity["model_sha256"], identity["fingerprint"]);  // it has no file of its own
  EXPECT_EQ(identity["data_sha256"], digest(some.images));
}

TEST_F(CertifyInHandTest, ATableThatWasCutOffIsContinuedByTheSameQuestionAlone) {
  certify(images(5));
  const auto whole = read_certificates(table_);
  std::string text = read_file(table_);
  text.resize(text.rfind('\n', text.size() - 2) - 5);  // in the middle of the last row but one
  write_file(table_, text);
  expect_error([&] { certify(images(5)); }, "t.tsv");
  CertificationOptions other = few_votes();
  other.seed = 12;
  expect_error([&] { certify(images(5), /*resume=*/true, other); }, "seed");
  certify(images(5), /*resume=*/true);
  const auto again = read_certificates(table_);
  ASSERT_EQ(again.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(again[i].certificate.counts.top, whole[i].certificate.counts.top);
  }
}

TEST_F(CertifyInHandTest, WhatCannotBeCertifiedIsRefusedBeforeATableIsBegun) {
  expect_refused({}, "no images");
  jobs::ImagesInHand some = images(3);
  some.indices = {4, 4, 5};
  expect_refused(some, "must rise");
  some = images(3);
  some.indices.pop_back();
  expect_refused(some, "3 images with 2 indices");
  some = images(3);
  some.images.labels[1] = 2;
  expect_refused(some, "label 2");
  some = images(1);
  some.images.images = Array({1, kShape[0], kShape[1], kShape[2]});
  std::fill_n(some.images.images.floats(), kValues, 1.5F);
  expect_refused(some, "outside [0, 1]");
}

TEST_F(CertifyInHandTest, AClassifierThatChangesMakesTheTableVoid) {
  int calls = 0;
  const Classifier drifts = [&, f = brighter_than_half()](const Array& given) {
    Array logits = f(given);
    if (++calls > 12) logits.floats()[0] += 1;
    return logits;
  };
  expect_error(
      [&] {
        jobs::certify_in_hand(in_hand(drifts), images(5), few_votes(), table_, false, context_);
      },
      "void");
  expect_error([&] { read_certificates(table_); }, "void");
}

// The law is the sampler's, whatever the options say.
TEST_F(CertifyInHandTest, ATableOfExactNoiseSaysSo) {
  const jobs::ClassifierInHand exact{
      std::make_shared<SerialSampler>(fixed_batch(brighter_than_half(), 2), kExactNoise),
      "half-space", ""};
  jobs::certify_in_hand(exact, images(3), few_votes(), table_, false, context_);
  EXPECT_EQ(read_identity(table_).noise, kExactNoise.name);
  EXPECT_EQ(read_certificates(table_).size(), 3U);
}

class VerifyInHandTest : public CertifyInHandTest {
 protected:
  jobs::Verification verify(const jobs::ClassifierInHand& classifier,
                            const jobs::ImagesInHand& some, int64_t count = 5) {
    return jobs::verify_in_hand(
        {.table = table_.string(), .images = count, .sigma = 0.25, .seed = 7}, classifier, some,
        context_);
  }
};

TEST_F(VerifyInHandTest, AnHonestTablePasses) {
  certify(images(5));
  const jobs::Verification found = verify(in_hand(brighter_than_half()), images(5), 3);
  EXPECT_EQ(found.rows, 5);
  ASSERT_EQ(found.images.size(), 3U);
  EXPECT_EQ(found.images[0].index % 10, 0);
  EXPECT_EQ(found.images[0].n, 200);
  EXPECT_TRUE(found.plausible());
  EXPECT_TRUE(verify(in_hand(brighter_than_half()), images(5), 0).images.empty());
}

TEST_F(VerifyInHandTest, PlantedCountsAreFound) {
  certify(images(5));
  std::vector<CertificateRow> rows = read_certificates(table_);
  for (CertificateRow& row : rows) {
    const Counts all = {row.certificate.counts.selected, 200, 200, 0};
    row.certificate =
        certificate_from_counts(all, row.sigma, row.alpha, RadiusKind::kOneSided, kFloatNoise);
  }
  write_like(table_, path("planted.tsv"), rows);
  table_ = path("planted.tsv");
  EXPECT_FALSE(verify(in_hand(brighter_than_half()), images(5)).plausible());
}

TEST_F(VerifyInHandTest, AnotherModelOtherImagesAndAnotherSigmaAreRefused) {
  certify(images(5));
  const Classifier f = brighter_than_half();
  const Classifier other = [f](const Array& x) {
    Array logits = f(x).clone();
    for (int64_t i = 0; i < logits.count(); ++i) logits.floats()[i] *= 2;
    return logits;
  };
  expect_error([&] { verify(in_hand(other), images(5)); }, "is about another model");
  expect_error([&] { verify(in_hand(f), images(4)); }, "is about another data set");
  expect_error(
      [&] {
        jobs::verify_in_hand({.table = table_.string(), .sigma = 0.5}, in_hand(f), images(5),
                             context_);
      },
      "was made with sigma 0.25");
}

// On another machine logits may differ in their last bits.
TEST_F(VerifyInHandTest, OtherArithmeticIsOnlyWarnedAbout) {
  certify(images(5));
  std::vector<std::string> warnings;
  context_.warn = [&](const std::string& line) { warnings.push_back(line); };
  const Classifier f = brighter_than_half();
  BaseClassifier elsewhere = fixed_batch(
      [f](const Array& x) {
        Array logits = f(x).clone();
        for (int64_t i = 0; i < logits.count(); ++i) logits.floats()[i] *= 1.0001F;
        return logits;
      },
      2);
  elsewhere.description = "another machine";
  const jobs::ClassifierInHand there{std::make_shared<SerialSampler>(elsewhere, kFloatNoise),
                                     "half-space", ""};
  EXPECT_TRUE(verify(there, images(5)).plausible());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("cannot be told"), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
