// The test behind `verify`: are the votes of a table too high compared with votes drawn anew?
//
// In an honest table the stored and the new votes of a row have the same law, which gives each row
// a p-value, provided that rows are not chosen by their stored votes. Certified rows are so chosen:
// their counts are high by selection, and honest new counts tend to be lower. Rows are therefore
// chosen among all that have votes, including abstentions.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/records/certificates.h"

namespace fedsmooth::jobs {

/// Chooses `count` of the rows with votes, or all if there are fewer, and returns them in the
/// table's order. The choice depends on the seed and on which rows have votes, not on the votes.
std::vector<CertificateRow> choose_rows(const std::vector<CertificateRow>& rows, int64_t count,
                                        uint64_t seed);

/// Returns the p-value of one row, where `top` of `n` new votes are for its class, by Fisher's
/// exact test, one-sided. Votes that were stopped early have no fixed law. Such a row claims that
/// the probability of its class is above p_lower, and is wrong with probability at most alpha; so
/// the new votes are tested against p_lower, and alpha is added. A row that abstained claims
/// nothing and gets 1.
double row_p_value(const CertificateRow& row, int64_t top, int64_t n);

/// Returns the p-value of a table from those of K > 0 rows: K times the smallest (Bonferroni). A
/// row that was stopped early never has a p-value below alpha, but many small ones are unusual: at
/// least s of K independent ones are at most p with probability at most P[Bin(K, p) >= s], so with
/// `stopped_early` it is K times the smallest of these probabilities over s.
double table_p_value(std::vector<double> of_rows, bool stopped_early);

}  // namespace fedsmooth::jobs
