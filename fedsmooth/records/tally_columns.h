// The columns `votes` and `selection_votes` of certificates.tsv: CLASS:VOTES,... in ascending order
// of class, without classes that got no vote, such as 3:99800,5:200. "-" if no class got a vote,
// and in rows from tables of earlier versions, which kept only the two largest counts.
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// Reads the next field, of the column `name`, in time linear in its length. Throws an Error if it
/// is not a list of votes in ascending order of class, or "-".
Tally read_tally(FieldReader& fields, std::string_view name);
std::string format_tally(const Tally& tally);

/// Returns why the votes of all classes disagree with the row's other counts; empty if they agree.
std::string_view contradiction_in_tallies(const CertificateRow& row);

}  // namespace fedsmooth
