// The columns of certificates.tsv about several groups: `malicious`, the number of malicious
// clients against which the radius holds, and `gaps`, the histogram that proves it for every such
// number; see smoothing/group_votes.h. Both are "-" in rows of one network.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// Reads the next field, `malicious`; none for "-". Throws an Error if it is negative or no number.
std::optional<int64_t> read_malicious(FieldReader& fields);
std::string format_malicious(const CertificateRow& row);

/// Reads the next field, `gaps`: the number of copies with gap 0, 1, ..., G, then of those with a
/// gap below 0, such as 0,3,...,95,2. Empty for "-".
Gaps read_gaps(FieldReader& fields);
std::string format_gaps(const CertificateRow& row);

/// Returns why the row's gaps, malicious clients and counts contradict each other; empty if they do
/// not.
std::string_view contradiction_in_groups(const CertificateRow& row);

/// Recomputes a row from its gaps for another number of malicious clients, at the same alpha.
/// Throws an Error if the number differs and the row is of one network or its votes were stopped
/// early (--radii), so that n depends on them.
CertificateRow against(const CertificateRow& row, int64_t malicious);
/// Recomputes each row by against().
std::vector<CertificateRow> against(const std::vector<CertificateRow>& rows, int64_t malicious);

}  // namespace fedsmooth
