#include "fedsmooth/federated/clients/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"

namespace fedsmooth {
namespace {

// 1000 of each class.
const std::vector<int64_t> kLabels = [] {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 10'000; ++i) labels.push_back(i % 10);
  return labels;
}();

Partition partition(PartitionKind kind, double gamma = 0.1, double alpha = 0.5, uint64_t seed = 1) {
  PartitionOptions o;
  o.kind = kind;
  o.clients = 200;
  o.samples_per_client = 100;
  o.gamma = gamma;
  o.alpha = alpha;
  return Partition(o, kLabels, 10, seed);
}

std::vector<int64_t> histogram(const std::vector<int64_t>& images) {
  std::vector<int64_t> counts(10, 0);
  for (const int64_t i : images) ++counts[i % 10];
  return counts;
}

TEST(PartitionTest, NoClientHasAnImageTwice) {
  for (const PartitionKind kind :
       {PartitionKind::kMajorClass, PartitionKind::kIid, PartitionKind::kDirichlet}) {
    const Partition p = partition(kind);
    for (const int64_t k : {0, 7, 199}) {
      const auto images = p.images(k);
      EXPECT_EQ(images.size(), 100U);
      EXPECT_EQ(std::set<int64_t>(images.begin(), images.end()).size(), 100U);
    }
  }
}

TEST(PartitionTest, IsAFunctionOfSeedAndClient) {
  const Partition a = partition(PartitionKind::kMajorClass),
                  b = partition(PartitionKind::kMajorClass);
  EXPECT_EQ(a.images(5), b.images(5));
  EXPECT_NE(a.images(5), a.images(6));
  EXPECT_NE(a.images(5), partition(PartitionKind::kMajorClass, 0.1, 0.5, 2).images(5));
}

// Exactly gamma of one class; the rest hypergeometric over the other nine. Over 200 clients each of
// the ten classes is the major one 20 times on average, standard deviation 4.2.
TEST(PartitionTest, GammaIsTheShareOfTheMajorClass) {
  const Partition p = partition(PartitionKind::kMajorClass, 0.5);
  std::vector<int64_t> majors(10, 0), others(10, 0);
  for (int64_t k = 0; k < 200; ++k) {
    const auto counts = histogram(p.images(k));
    const auto major = std::max_element(counts.begin(), counts.end()) - counts.begin();
    EXPECT_EQ(counts[major], 50);
    ++majors[major];
    for (int c = 0; c < 10; ++c) others[c] += c == major ? 0 : counts[c];
  }
  for (int c = 0; c < 10; ++c) {
    EXPECT_NEAR(static_cast<double>(majors[c]), 20, 5 * 4.2) << c;
    // 50 images a client over nine classes where c is not the major one.
    const double expected = static_cast<double>(200 - majors[c]) * 50 / 9;
    EXPECT_NEAR(static_cast<double>(others[c]), expected, 5 * std::sqrt(expected)) << c;
  }
}

TEST(PartitionTest, GammaOfOneTenthIsHomogeneous) {
  const Partition p = partition(PartitionKind::kMajorClass, 0.1);
  std::vector<int64_t> sum(10, 0);
  for (int64_t k = 0; k < 200; ++k) {
    const auto counts = histogram(p.images(k));
    for (int c = 0; c < 10; ++c) sum[c] += counts[c];
  }
  for (int c = 0; c < 10; ++c) EXPECT_NEAR(static_cast<double>(sum[c]), 2000, 5 * std::sqrt(2000));
}

TEST(PartitionTest, DirichletIsUnevenForSmallAlpha) {
  const auto largest = [](double alpha) {
    const Partition p = partition(PartitionKind::kDirichlet, 0.1, alpha);
    double sum = 0;
    for (int64_t k = 0; k < 200; ++k) {
      const auto counts = histogram(p.images(k));
      sum += static_cast<double>(*std::max_element(counts.begin(), counts.end())) / 100;
    }
    return sum / 200;
  };
  EXPECT_GT(largest(0.05), 0.7);
  EXPECT_LT(largest(100), 0.2);
}

TEST(PartitionTest, ShardsCoverEverythingOnce) {
  const Partition p = partition(PartitionKind::kShards);
  std::set<int64_t> seen;
  for (int64_t k = 0; k < 200; ++k) {
    const auto images = p.images(k);
    EXPECT_EQ(images.size(), 50U);
    const auto counts = histogram(images);
    EXPECT_LE(std::count_if(counts.begin(), counts.end(), [](int64_t n) { return n > 0; }), 3);
    seen.insert(images.begin(), images.end());
  }
  EXPECT_EQ(seen.size(), 10'000U);
}

TEST(PartitionTest, ReadsAFile) {
  const auto path = std::filesystem::temp_directory_path() / "fedsmooth_partition_test.tsv";
  PartitionOptions o;
  o.kind = PartitionKind::kFile;
  o.file = path.string();
  write_file(path, "0\t5\n1\t7\n0\t9\n");
  const Partition p(o, kLabels, 10, 0);
  EXPECT_EQ(p.clients(), 2);
  EXPECT_EQ(p.images(0), (std::vector<int64_t>{5, 9}));
  for (const std::string bad : {"0\t10000\n", "x\t1\n", "0 1\n", "0\t1", "2\t1\n", "-1\t1\n"}) {
    write_file(path, bad);
    EXPECT_THROW(Partition(o, kLabels, 10, 0), Error) << bad;
  }
  std::filesystem::remove(path);
}

TEST(PartitionTest, RefusesImpossiblePartitions) {
  PartitionOptions o;
  o.samples_per_client = 10'001;
  EXPECT_THROW(Partition(o, kLabels, 10, 0), Error);
  o.samples_per_client = 5000;
  o.gamma = 0.5;
  EXPECT_THROW(Partition(o, kLabels, 10, 0), Error);
  o.kind = PartitionKind::kShards;
  o.clients = 5001;
  EXPECT_THROW(Partition(o, kLabels, 10, 0), Error);
}

}  // namespace
}  // namespace fedsmooth
