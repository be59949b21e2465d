#include "fedsmooth/distributed/round_words.h"

#include <gtest/gtest.h>

#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

constexpr int64_t kWeights = 3;
constexpr double kShare = 0.25;

RoundResult one_client(float value) {
  RoundResult result;
  result.sum.add({Array::of({kWeights}, {value, -value, 0.5F})}, kShare);
  result.telemetry.loss += 1.5;
  result.telemetry.steps = 2;
  return result;
}

std::vector<long long> words_of(const RoundResult& result) {
  std::vector<long long> words;
  append_words(result, kWeights, words);
  return words;
}

TEST(RoundWordsTest, WordsAddUpAsResultsDo) {
  RoundResult sum = one_client(1);
  std::vector<long long> words = words_of(sum);
  EXPECT_EQ(words.size(), word_count(kWeights));
  const RoundResult other = one_client(-7);
  add_words(words_of(other), words);
  sum.sum.add(other.sum);
  sum.telemetry.add(other.telemetry);
  EXPECT_EQ(words, words_of(sum));
  EXPECT_EQ(words_of(take_words(words.data(), kWeights)), words);
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

TEST(RoundWordsTest, HonestWordsPassAtTheLimitOfTheWeights) {
  check_words(words_of(one_client(FixedPointSum::kLargest)), kWeights, {kShare});
  check_words(words_of(one_client(-FixedPointSum::kLargest)), kWeights, {kShare});
  RoundResult dropped;
  dropped.sum.add({Array::of({kWeights}, {1e6F, 0, 0})}, kShare);
  check_words(words_of(dropped), kWeights, {kShare});
  RoundResult half = one_client(1);
  half.sum.add({Array::of({kWeights}, {std::nanf(""), 0, 0})}, kShare);
  check_words(words_of(half), kWeights, {kShare, kShare});
}

TEST(RoundWordsTest, WordsThatNoHonestClientSendsAreRefused) {
  const std::vector<long long> honest = words_of(one_client(1));
  const auto refused = [&](size_t place, long long value, const std::string& why) {
    std::vector<long long> words = honest;
    words.at(place) = value;
    expect_error([&] { check_words(words, kWeights, {kShare}); }, why);
  };
  refused(0, 1LL << 62, "sum 0");
  refused(2, std::numeric_limits<long long>::min(), "sum 2");
  refused(2, honest[kWeights] * 4096 + 4096, "sum 2");
  refused(kWeights, honest[kWeights] + 1, "kept share");
  refused(kWeights, -1, "kept share");
  refused(kWeights, 0, "kept share");
  refused(kWeights + 1, 1, "kept share");
  refused(kWeights + 1, 2, "2 clients dropped of 1");
  refused(kWeights + 1, -1, "dropped");
  refused(kWeights + 2, std::numeric_limits<long long>::max(), "telemetry");
  std::vector<long long> words = honest;
  words.pop_back();
  expect_error([&] { check_words(words, kWeights, {kShare}); }, "words, expected");
}

}  // namespace
}  // namespace fedsmooth
