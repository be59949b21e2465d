#include "fedsmooth/distributed/round_words.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

constexpr long long kLargestTelemetry = 1LL << 55;

long long fixed_point(double share) { return std::llrint(share * FixedPointSum::kUnit); }

// A client adds llrint(s w) and llrint(s) for s = share 2^50, which round by a half at most.
void check_trained(const std::vector<long long>& words, const SumSizes& sizes, long long share,
                   long long clients) {
  const auto largest = static_cast<long long>(kAveraged.trained);
  const long long bound = share * largest + clients * (largest / 2 + 1);
  const auto end = words.begin() + sizes.trained;
  const auto absurd =
      std::find_if(words.begin(), end, [&](long long sum) { return sum > bound || sum < -bound; });
  if (absurd == end) return;
  throw Error("sum {} is {}, beyond what weights within {} add up to", absurd - words.begin(),
              *absurd, largest);
}

// Words beyond what digits add up to could overflow when they are added to those of others.
void check_statistics(const std::vector<long long>& words, const SumSizes& sizes, long long share,
                      long long clients) {
  const long long most = clients << kWideBits;
  const double bound = static_cast<double>(share + clients) * double{kAveraged.statistic};
  for (int64_t i = 0; i < sizes.statistics; ++i) {
    const long long* digits = words.data() + sizes.trained + i * kWideWords;
    const bool small = std::all_of(digits, digits + kWideWords,
                                   [&](long long word) { return word <= most && word >= -most; });
    if (small && sizes.is_variance[i] && wide_value(digits) < 0) {
      throw Error("running statistic {} is a sum of variances below zero", i);
    }
    if (small && std::abs(wide_value(digits)) <= bound) continue;
    throw Error("running statistic {} is beyond what values within {:g} add up to", i,
                kAveraged.statistic);
  }
}

}  // namespace

size_t word_count(int64_t sums) { return sums + 2 + kTelemetryWords; }

void append_words(const RoundResult& result, int64_t sums, std::vector<long long>& words) {
  const std::vector<long long>& found = result.sum.words();
  words.insert(words.end(), found.begin(), found.end());
  words.insert(words.end(), sums - std::ssize(found), 0);
  words.push_back(result.sum.share());
  words.push_back(result.dropped);
  const std::vector<int64_t> telemetry = result.telemetry.to_words();
  words.insert(words.end(), telemetry.begin(), telemetry.end());
}

RoundResult read_result(const long long* words, int64_t sums) {
  RoundResult result;
  result.sum.add(words, sums, words[sums]);
  result.dropped = words[sums + 1];
  result.telemetry.add_words(words + sums + 2);
  return result;
}

void add_dropped(int64_t clients, int64_t sums, std::vector<long long>& words) {
  words.at(sums + 1) += clients;
}

void add_words(const std::vector<long long>& more, std::vector<long long>& words) {
  if (words.empty()) words.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) {
    words[i] = static_cast<long long>(static_cast<unsigned long long>(words[i]) +
                                      static_cast<unsigned long long>(more[i]));
  }
}

void check_words(const std::vector<long long>& words, const SumSizes& sizes,
                 const std::vector<double>& shares) {
  const int64_t sums = sizes.words();
  if (words.size() != word_count(sums)) {
    throw Error("{} words, expected {}", words.size(), word_count(sums));
  }
  const long long share = words[sums], dropped = words[sums + 1];
  const auto clients = static_cast<long long>(shares.size());
  if (dropped < 0 || dropped > clients) {
    throw Error("{} clients dropped of {}", dropped, clients);
  }
  long long whole = 0;
  for (const double each : shares) whole += fixed_point(each);
  const bool possible = dropped == 0         ? share == whole
                        : dropped == clients ? share == 0
                                             : share > 0 && share < whole;
  if (!possible) {
    throw Error("a kept share of {} with {} of {} clients dropped", share, dropped, clients);
  }
  check_trained(words, sizes, share, clients);
  check_statistics(words, sizes, share, clients);
}

void check_telemetry(const std::vector<long long>& words) {
  for (size_t i = words.size() - kTelemetryWords; i < words.size(); ++i) {
    if (words[i] > kLargestTelemetry || words[i] < -kLargestTelemetry) {
      throw Error("word {} of the telemetry is {}", i + kTelemetryWords - words.size(), words[i]);
    }
  }
}

}  // namespace fedsmooth
