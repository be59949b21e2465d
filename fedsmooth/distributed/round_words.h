// A round's result as 64-bit words: the sums, the share of the cohort that was kept, the number of
// dropped clients, the telemetry. All are integers, so the results of parts of a cohort add up word
// by word, in any order and modulo 2^64, to the result of the whole.
#pragma once

#include <vector>

#include "fedsmooth/federated/train.h"

namespace fedsmooth {

/// Returns the number of words of a result whose sums have `sums` words, see SumSizes.
size_t word_count(int64_t sums);

/// Appends the words of a result whose sums have `sums` words. A result without sums, of which no
/// client was kept, appends zeros for them.
void append_words(const RoundResult& result, int64_t sums, std::vector<long long>& words);

/// Reads the word_count(sums) words of a result whose sums have `sums` words.
RoundResult read_result(const long long* words, int64_t sums);

/// Adds `clients` to the number of dropped clients in `words`: their weights or words are missing.
void add_dropped(int64_t clients, int64_t sums, std::vector<long long>& words);

/// Adds `more` to `words`, word by word, modulo 2^64 as masks require.
void add_words(const std::vector<long long>& more, std::vector<long long>& words);

/// Throws an Error unless these can be the words of the clients with these shares of the average:
/// as many as the sums need, the kept share that of the clients that were not dropped, every sum at
/// most what values within kAveraged add up to.
void check_words(const std::vector<long long>& words, const SumSizes& sizes,
                 const std::vector<double>& shares);

/// Throws an Error if a word of the telemetry is beyond +-2^55. For words that passed check_words()
/// and are one node's: a total is not refused for what it reports.
void check_telemetry(const std::vector<long long>& words);

}  // namespace fedsmooth
