// The last four columns of certificates.tsv: the rule by which an image got its votes, and what a
// row of given radii rests on.
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// Relative: two versions of Boost may differ in a last digit.
inline constexpr double kRounding = 1e-12;

VoteRule read_rule(FieldReader& fields);
/// The given radii with the counts at which they were certified; "-" if there are none.
void read_radii(FieldReader& fields, CertificateRow& row);
std::string format_radii(const CertificateRow& row);

/// What no row can say of its rule; empty if there is nothing.
std::string_view contradiction_in_rule(const CertificateRow& row);

/// As unsupported(), for a row of given radii.
std::string_view unsupported_radii(const CertificateRow& row);

}  // namespace fedsmooth
