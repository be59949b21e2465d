// The columns rule, cap, beta and radii of certificates.tsv: the rule that decides an image's
// number of votes, and, for given radii, the counts at which each was certified.
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// Relative tolerance of recomputed bounds: two versions of Boost may differ in the last digit.
inline constexpr double kRounding = 1e-12;

VoteRule read_rule(FieldReader& fields);
/// Reads the next field into row.radii and row.certificate.latches: the given radii, and after the
/// certified ones the counts at which they were, such as 0@90/100,0.25@117/120,0.5. "-" is none.
void read_radii(FieldReader& fields, CertificateRow& row);
std::string format_radii(const CertificateRow& row);

/// Returns why rule, cap, beta, radii and the answer contradict each other; empty if they do not.
std::string_view contradiction_in_rule(const CertificateRow& row);

/// Returns why a row of given radii claims more than the counts at which they were certified
/// support; empty if it does not.
std::string_view unsupported_radii(const CertificateRow& row);

}  // namespace fedsmooth
