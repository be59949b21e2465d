// The test behind `verify`: are the votes of a table too high beside votes drawn anew?
//
// Under an honest table the stored and the new votes of a row have the same law, so each row has a
// p-value. That needs rows that were not chosen by their stored votes. Certified rows are: their
// counts are high by selection, and honest new votes fall behind them. Rows are therefore chosen
// among all that have votes, abstentions included.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/records/certificates.h"

namespace fedsmooth::jobs {

/// `count` of the rows with votes, or all if there are fewer, in the table's order. The choice
/// depends on the seed and on which rows have votes, not on what the votes are.
std::vector<CertificateRow> choose_rows(const std::vector<CertificateRow>& rows, int64_t count,
                                        uint64_t seed);

/// The p-value of one row, of whose `n` new votes `top` are for its class. By Fisher's exact test,
/// one-sided. Votes that were stopped early do not have a fixed law: such a row claims that its
/// class has more than the probability p_lower, and is wrong with probability at most alpha, so
/// the new votes are tested against p_lower and alpha is added. If it abstained it claims nothing.
double row_p_value(const CertificateRow& row, int64_t top, int64_t n);

/// The p-value of a table from those of K > 0 rows: K times the smallest (Bonferroni). No row
/// that was stopped early has a p-value below alpha, but many small ones are unusual: s of K
/// independent ones are at most p with probability at most P[Bin(K, p) >= s], and K times the
/// smallest of these over s is a p-value too.
double table_p_value(std::vector<double> of_rows, bool stopped_early);

}  // namespace fedsmooth::jobs
