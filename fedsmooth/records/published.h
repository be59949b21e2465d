// A published table of certificates, in the six columns that locuslab/smoothing writes and the
// field has kept since: idx, label, predict, radius, correct, time. It states no counts, no sigma
// and no alpha, so that nothing in it can be recomputed: it is shown and compared, and never
// joined, resumed or certified again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/records/certificates.h"

namespace fedsmooth {

/// Whether a text begins with the header of such a table.
bool is_published(std::string_view text);

/// Parses a whole file; `name` stands in error messages. Radii are as printed. Whatever is wrong is
/// an Error with its line: another number of columns, a radius that is negative or not finite, an
/// index that occurs twice, `correct` that does not follow, more than kMaxRows.
std::vector<CertificateRow> parse_published(std::string_view text, const std::string& name);

}  // namespace fedsmooth
