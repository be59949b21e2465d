// A published table of certificates, in the six columns that locuslab/smoothing writes and that
// other papers have kept: idx, label, predict, radius, correct, time. It states no counts, sigma or
// alpha, so that nothing in it can be recomputed. It can be shown and compared, but not joined,
// resumed or certified again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/records/certificates.h"

namespace fedsmooth {

/// Returns whether a text begins with the header of a published table.
bool is_published(std::string_view text);

/// Parses a whole file, which must be is_published(); `name` is its name in messages. Radii are as
/// printed. Throws an Error that names the line for another number of columns, a radius that is
/// negative or not finite, an index that occurs twice, a `correct` that does not follow from
/// predict and label, or more than kMaxRows lines.
std::vector<CertificateRow> parse_published(std::string_view text, const std::string& name);

}  // namespace fedsmooth
