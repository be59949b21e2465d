#include "fedsmooth/distributed/round_words.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

// A Telemetry adds up word by word, as it holds integers only.
static_assert(std::is_trivially_copyable_v<Telemetry> &&
              sizeof(Telemetry) % sizeof(long long) == 0);
constexpr size_t kTelemetryWords = sizeof(Telemetry) / sizeof(long long);
constexpr long long kLargestTelemetry = 1LL << 55;

long long fixed_point(double share) { return std::llrint(share * FixedPointSum::kUnit); }

}  // namespace

size_t word_count(int64_t weights) { return weights + 2 + kTelemetryWords; }

void append_words(const RoundResult& result, int64_t weights, std::vector<long long>& words) {
  const std::vector<long long>& sums = result.sum.sums();
  words.insert(words.end(), sums.begin(), sums.end());
  words.insert(words.end(), weights - static_cast<int64_t>(sums.size()), 0);
  words.push_back(result.sum.share());
  words.push_back(result.sum.dropped());
  words.resize(words.size() + kTelemetryWords);
  std::memcpy(&words[words.size() - kTelemetryWords], &result.telemetry, sizeof(Telemetry));
}

RoundResult take_words(const long long* words, int64_t weights) {
  RoundResult result;
  result.sum.add(words, weights, words[weights], words[weights + 1]);
  std::memcpy(static_cast<void*>(&result.telemetry), words + weights + 2, sizeof(Telemetry));
  return result;
}

void add_dropped(int64_t clients, int64_t weights, std::vector<long long>& words) {
  words.at(weights + 1) += clients;
}

void add_words(const std::vector<long long>& more, std::vector<long long>& words) {
  if (words.empty()) words.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) {
    words[i] = static_cast<long long>(static_cast<unsigned long long>(words[i]) +
                                      static_cast<unsigned long long>(more[i]));
  }
}

void check_words(const std::vector<long long>& words, int64_t weights,
                 const std::vector<double>& shares) {
  if (words.size() != word_count(weights)) {
    throw Error("{} words, expected {}", words.size(), word_count(weights));
  }
  const long long share = words[weights], dropped = words[weights + 1];
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
  // A client adds llrint(s w) and llrint(s) for s = share 2^50, which round by a half at most.
  const auto largest = static_cast<long long>(FixedPointSum::kLargest);
  const long long bound = share * largest + clients * (largest / 2 + 1);
  const auto absurd = std::find_if(words.begin(), words.begin() + weights,
                                   [&](long long sum) { return sum > bound || sum < -bound; });
  if (absurd != words.begin() + weights) {
    throw Error("sum {} is {}, beyond what weights within {} add up to", absurd - words.begin(),
                *absurd, largest);
  }
  for (size_t i = weights + 2; i < words.size(); ++i) {
    if (words[i] > kLargestTelemetry || words[i] < -kLargestTelemetry) {
      throw Error("word {} of the telemetry is {}", i - weights - 2, words[i]);
    }
  }
}

}  // namespace fedsmooth
