// The columns of certificates.tsv about several groups: `malicious`, how many malicious clients the
// radius is against, and `gaps`, the histogram that proves it for every number of them; see
// smoothing/group_votes.h. Both are "-" in rows of one network.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

std::optional<int64_t> read_malicious(FieldReader& fields);
std::string format_malicious(const CertificateRow& row);

/// The copies with gap 0, 1, ..., G, then those below 0: "0,3,...,95,2". "-" if there is none.
Gaps read_gaps(FieldReader& fields);
std::string format_gaps(const CertificateRow& row);

/// What no row can say of several groups; empty if there is nothing.
std::string_view contradiction_in_groups(const CertificateRow& row);

/// The row against another number of malicious clients, at the same level, by its gaps. Throws an
/// Error if it is of one network, or was stopped early (--radii): its n depends on the votes.
CertificateRow against(const CertificateRow& row, int64_t malicious);
std::vector<CertificateRow> against(const std::vector<CertificateRow>& rows, int64_t malicious);

}  // namespace fedsmooth
