#include "fedsmooth/report/client_accuracy.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

CertificateRow row(int64_t label, int64_t predict, double radius) {
  CertificateRow made;
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
  const ClientSummary odd = summarize_clients({{3, 0.9}, {5, 0.2}, {8, 0.4}, {1, 0.2}, {0, 0.8}});
  EXPECT_DOUBLE_EQ(odd.mean, 0.5);
  EXPECT_DOUBLE_EQ(odd.median, 0.4);
  EXPECT_EQ(odd.worst.client, 5);
  EXPECT_DOUBLE_EQ(odd.worst.accuracy, 0.2);
  const ClientSummary even = summarize_clients({{0, 0.1}, {1, 0.7}, {2, 0.3}, {3, 0.9}});
  EXPECT_DOUBLE_EQ(even.median, 0.5);
  EXPECT_ANY_THROW(summarize_clients({}));
}

}  // namespace
}  // namespace fedsmooth
