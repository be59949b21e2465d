#include "fedsmooth/distributed/round_words.h"

#include <gtest/gtest.h>

#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

// Three trained weights, then two running statistics.
const std::vector<Parameter> kKnown = {{"weight", {3}}, {"mean", {2}, /*trained=*/false}};
const SumSizes kSizes({Array({3}), Array({2})}, kKnown);
const int64_t kSums = kSizes.words();
constexpr double kShare = 0.25;

Weights weights_of(float value, float statistic) {
  return {Array::of({3}, {value, -value, 0.5F}), Array::of({2}, {statistic, -statistic})};
}

RoundResult one_client(float value, float statistic = 1e20F) {
  RoundResult result;
  result.sum.add(weights_of(value, statistic), kKnown, kShare);
  result.telemetry.loss += 1.5;
  result.telemetry.steps = 2;
  return result;
}

std::vector<long long> words_of(const RoundResult& result) {
  std::vector<long long> words;
  append_words(result, kSums, words);
  return words;
}

TEST(RoundWordsTest, WordsAddUpAsResultsDo) {
  RoundResult sum = one_client(1);
  std::vector<long long> words = words_of(sum);
  EXPECT_EQ(words.size(), word_count(kSums));
  const RoundResult other = one_client(-7);
  add_words(words_of(other), words);
  sum.add(other);
  EXPECT_EQ(words, words_of(sum));
  EXPECT_EQ(words_of(read_result(words.data(), kSums)), words);
}

TEST(RoundWordsTest, MasksCancelWhateverOverflows) {
  const std::vector<long long> words = words_of(one_client(1));
  std::vector<long long> total(words.size(), 0), mask(words.size(), 0x7fff'ffff'ffff'fff0),
      opposite(words.size(), -0x7fff'ffff'ffff'fff0);
  add_words(mask, total);
  add_words(words, total);
  add_words(words, total);
  add_words(opposite, total);
  std::vector<long long> twice = words;
  add_words(words, twice);
  EXPECT_EQ(total, twice);
}

TEST(RoundWordsTest, HonestWordsPassAtTheLimitOfTheValues) {
  for (const float sign : {1.0F, -1.0F}) {
    const RoundResult most = one_client(sign * kAveraged.trained, sign * kAveraged.statistic);
    check_words(words_of(most), kSizes, {kShare});
  }
  RoundResult dropped;
  dropped.drop(0, "");
  check_words(words_of(dropped), kSizes, {kShare});
  RoundResult half = one_client(1);
  half.drop(1, "");
  check_words(words_of(half), kSizes, {kShare, kShare});
}

// Statistics so large that each adds to all words, from parts that are added modulo 2^64.
TEST(RoundWordsTest, MaskedPartsAddUpToTheAverageOfAll) {
  const std::vector<float> values = {1e30F, -3e29F, 7e10F, 0.125F};
  RoundResult whole;
  std::vector<long long> total, mask(word_count(kSums)), opposite(mask.size());
  for (size_t i = 0; i < mask.size(); ++i) {
    mask[i] = static_cast<long long>(0x9e3779b97f4a7c15 * (i + 1));
    opposite[i] = static_cast<long long>(0 - static_cast<unsigned long long>(mask[i]));
  }
  add_words(mask, total);
  for (const float value : values) {
    whole.add(one_client(1, value));
    add_words(words_of(one_client(1, value)), total);
  }
  add_words(opposite, total);
  EXPECT_EQ(total, words_of(whole));
  check_words(total, kSizes, std::vector<double>(4, kShare));
  const Weights like = weights_of(0, 0);
  const Weights found = read_result(total.data(), kSums).sum.average(like, kKnown);
  EXPECT_TRUE(same_bits(found[1], whole.sum.average(like, kKnown)[1]));
  EXPECT_FLOAT_EQ(found[1].floats()[0], 1.75e29F);
}

TEST(RoundWordsTest, SumsOfVariancesAreNotNegative) {
  const std::vector<Parameter> known = {{"norm.running_mean", {1}, /*trained=*/false},
                                        {"norm.running_var", {1}, /*trained=*/false}};
  const auto words_with = [&](float mean, float variance) {
    RoundResult result;
    result.sum.add({Array::full({1}, mean), Array::full({1}, variance)}, known, kShare);
    std::vector<long long> words;
    append_words(result, 2 * kWideWords, words);
    return words;
  };
  const SumSizes sizes({Array({1}), Array({1})}, known);
  check_words(words_with(-3, 0), sizes, {kShare});
  check_words(words_with(-3, 1e20F), sizes, {kShare});
  expect_error([&] { check_words(words_with(3, -1e-3F), sizes, {kShare}); },
               "running statistic 1 is a sum of variances below zero");
}

TEST(RoundWordsTest, WordsThatNoHonestClientSendsAreRefused) {
  const std::vector<long long> honest = words_of(one_client(1));
  const auto refused = [&](size_t place, long long value, const std::string& why) {
    std::vector<long long> words = honest;
    words.at(place) = value;
    expect_error([&] { check_words(words, kSizes, {kShare}); }, why);
  };
  refused(0, 1LL << 62, "sum 0");
  refused(2, std::numeric_limits<long long>::min(), "sum 2");
  refused(2, honest[kSums] * 4096 + 4096, "sum 2");
  refused(3, (1LL << 40) + 1, "running statistic 0");
  refused(kSums - 1, 1LL << 33, "running statistic 1");
  refused(kSums, honest[kSums] + 1, "kept share");
  refused(kSums, -1, "kept share");
  refused(kSums, 0, "kept share");
  refused(kSums + 1, 1, "kept share");
  refused(kSums + 1, 2, "2 clients dropped of 1");
  refused(kSums + 1, -1, "dropped");
  std::vector<long long> words = honest;
  words.pop_back();
  expect_error([&] { check_words(words, kSizes, {kShare}); }, "words, expected");
}

TEST(RoundWordsTest, TelemetryCrossesFieldByField) {
  Telemetry sent;
  int64_t next = 1;
  Telemetry::visit_words(sent, [&](int64_t& word) { word = next++; });
  RoundResult result = one_client(1);
  result.telemetry = sent;
  const RoundResult found = read_result(words_of(result).data(), kSums);
  EXPECT_EQ(found.telemetry.to_words(), sent.to_words());
  EXPECT_EQ(found.telemetry.steps, sent.steps);
  EXPECT_EQ(found.telemetry.cosine, sent.cosine);
  EXPECT_EQ(found.telemetry.histogram, sent.histogram);
}

// One node's words are refused where they are absurd; those of all are not, so that a node that
// lies within the bound cannot end the training by what it reports.
TEST(RoundWordsTest, TelemetryOfOneNodeIsBoundedAndThatOfAllIsNot) {
  constexpr long long kMost = 1LL << 55;
  std::vector<long long> words = words_of(one_client(1));
  words.back() = kMost;
  check_telemetry(words);
  add_words(words, words);
  check_words(words, kSizes, {kShare, kShare});
  expect_error([&] { check_telemetry(words); }, "telemetry");
  words.back() = std::numeric_limits<long long>::max();
  Telemetry total = read_result(words.data(), kSums).telemetry;
  total.add(total);
  EXPECT_EQ(total.histogram.back(), -2);
}

}  // namespace
}  // namespace fedsmooth
