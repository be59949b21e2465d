#include "fedsmooth/report/client_accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/draws.h"

namespace fedsmooth {
namespace {

CertificateRow row(int64_t label, int64_t predict, double radius) {
  CertificateRow made;
  made.noise = &kFloatNoise;
  made.label = label;
  made.certificate.predict = predict;
  made.certificate.radius = radius;
  return made;
}

// Class 0: 3/4 correct, 1/4 at 0.5. Class 1: 1/2 correct, none at 0.5. Class 2: not certified.
const std::vector<CertificateRow> kRows = {row(0, 0, 0.1), row(0, 0, 0.2),      row(0, 0, 0.5),
                                           row(0, 1, 0.9), row(1, kAbstain, 0), row(1, 1, 0.4)};

TEST(ClientAccuracyTest, WeighsClassesByTheClientsShares) {
  const std::vector<ClientRow> clients = {{4, {10, 0, 0}}, {5, {0, 3, 0}}, {9, {6, 2, 0}}};
  const auto at_0 = accuracy_by_client(kRows, clients, 0);
  ASSERT_EQ(at_0.size(), 3);
  EXPECT_EQ(at_0[0].client, 4);
  EXPECT_DOUBLE_EQ(at_0[0].accuracy, 0.75);
  EXPECT_DOUBLE_EQ(at_0[1].accuracy, 0.5);
  EXPECT_EQ(at_0[2].client, 9);
  EXPECT_DOUBLE_EQ(at_0[2].accuracy, 0.75 * 0.75 + 0.25 * 0.5);
  const auto at_half = accuracy_by_client(kRows, clients, 0.5);
  EXPECT_DOUBLE_EQ(at_half[0].accuracy, 0.25);
  EXPECT_DOUBLE_EQ(at_half[1].accuracy, 0);
  EXPECT_DOUBLE_EQ(at_half[2].accuracy, 0.75 * 0.25);
}

TEST(ClientAccuracyTest, ClassesWithoutCertifiedImagesAreLeftOut) {
  const std::vector<ClientRow> clients = {{0, {2, 2, 96}}, {1, {0, 0, 5}}};
  const auto accuracies = accuracy_by_client(kRows, clients, 0);
  ASSERT_EQ(accuracies.size(), 1);
  EXPECT_DOUBLE_EQ(accuracies[0].accuracy, (0.75 + 0.5) / 2);
  EXPECT_EQ(classes_left_out(kRows, clients), std::vector<size_t>{2});
  EXPECT_TRUE(classes_left_out(kRows, {{0, {1, 1, 0}}}).empty());
}

TEST(ClientAccuracyTest, LabelsThatNoClientKnowsDoNotCount) {
  const auto accuracies = accuracy_by_client(kRows, {{0, {1}}}, 0);
  ASSERT_EQ(accuracies.size(), 1);
  EXPECT_DOUBLE_EQ(accuracies[0].accuracy, 0.75);
  EXPECT_TRUE(accuracy_by_client(kRows, {}, 0).empty());
  EXPECT_TRUE(accuracy_by_client({}, {{0, {1}}}, 0).empty());
}

TEST(ClientAccuracyTest, SummaryHasMeanMedianAndTheFirstOfTheWorst) {
  const std::vector<ClientRow> odd = {
      {3, {1, 0}}, {5, {0, 1}}, {8, {1, 1}}, {1, {0, 2}}, {0, {3, 1}}};
  const auto of_odd = summarize_clients(kRows, odd, 0);
  ASSERT_TRUE(of_odd);
  EXPECT_EQ(of_odd->clients, 5);
  EXPECT_NEAR(of_odd->mean, (0.75 + 0.5 + 0.625 + 0.5 + 0.6875) / 5, 1e-12);
  EXPECT_DOUBLE_EQ(of_odd->median, 0.625);
  EXPECT_EQ(of_odd->worst.client, 5);
  EXPECT_DOUBLE_EQ(of_odd->worst.accuracy, 0.5);
  const auto of_even = summarize_clients(kRows, {{3, {1, 0}}, {8, {1, 1}}}, 0);
  EXPECT_DOUBLE_EQ(of_even->median, (0.75 + 0.625) / 2);
  EXPECT_FALSE(summarize_clients(kRows, {}, 0));
  EXPECT_FALSE(summarize_clients(kRows, {{0, {0, 0, 7}}}, 0));
}

// `images` of each class, of which so many are certified.
std::vector<CertificateRow> rows_with(int64_t images, const std::vector<int64_t>& certified) {
  std::vector<CertificateRow> rows;
  for (int64_t c = 0; c < std::ssize(certified); ++c) {
    for (int64_t i = 0; i < images; ++i) rows.push_back(row(c, i < certified[c] ? c : kAbstain, 1));
  }
  return rows;
}

std::vector<ClientRow> one_class_each(int64_t classes) {
  std::vector<ClientRow> clients(classes);
  for (int64_t c = 0; c < classes; ++c) clients[c].labels.resize(classes), clients[c].labels[c] = 1;
  return clients;
}

TEST(ClientAccuracyTest, IntervalOfOneClientIsTwoStandardErrors) {
  const auto found = summarize_clients(rows_with(991, {491}), {{0, {5}}}, 0);
  // The centre is (491 + 4.5) / 1000; the factor's 2,000 draws know 1.96 to 0.1.
  const double error = std::sqrt(0.4955 * 0.5045 / 991);
  EXPECT_NEAR(found->worst_low, 491. / 991 - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(found->worst_high, 491. / 991 + 1.96 * error, 0.1 * error);
}

// Of ten independent clients the largest error is within 2.80 standard ones: 0.95^(1/10) = 0.9949.
// Clients that are alike count as one.
TEST(ClientAccuracyTest, IntervalHoldsForAllClientsAtOnce) {
  const std::vector<int64_t> equal(10, 500);
  const double error = std::sqrt(0.25 / 1000);
  const auto apart = summarize_clients(rows_with(1000, equal), one_class_each(10), 0);
  EXPECT_NEAR(apart->worst_low, 0.5 - 2.80 * error, 0.15 * error);
  EXPECT_NEAR(apart->worst_high, 0.5 + 2.80 * error, 0.15 * error);
  const std::vector<ClientRow> alike(10, {0, {3}});
  EXPECT_NEAR(summarize_clients(rows_with(1000, {500}), alike, 0)->worst_low, 0.5 - 1.96 * error,
              0.1 * error);
}

TEST(ClientAccuracyTest, IntervalIsOpenWhereNoImageOrEveryImageIsCertified) {
  const auto none = summarize_clients(rows_with(50, {0}), {{0, {1}}}, 0);
  EXPECT_EQ(none->worst_low, 0);
  EXPECT_GT(none->worst_high, 0.058);  // 0.95 of 0 of 50 by 1 - 0.05^(1/50)
  const auto all = summarize_clients(rows_with(50, {50}), {{0, {1}}}, 0);
  EXPECT_LT(all->worst_low, 1 - 0.058);
  EXPECT_EQ(all->worst_high, 1);
}

// Ten classes of equal accuracy are the worst case for a minimum: the smallest of ten estimates is
// 10 points too low on average. An interval of that client alone covers 75% of the time.
TEST(ClientAccuracyTest, IntervalContainsTheLeastAccuracy) {
  Draws draws({make_key(7, Purpose::kProbe)});
  const std::vector<ClientRow> clients = one_class_each(10);
  int contained = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> certified(10);
    for (int64_t& of_class : certified) {
      for (int i = 0; i < 50; ++i) of_class += draws.uniform() < 0.4;
    }
    const auto found = summarize_clients(rows_with(50, certified), clients, 0);
    contained += found->worst_low <= 0.4 && 0.4 <= found->worst_high;
  }
  EXPECT_GE(contained, 180);  // of 0.95 x 200 = 190, standard deviation 3.1
}

}  // namespace
}  // namespace fedsmooth
