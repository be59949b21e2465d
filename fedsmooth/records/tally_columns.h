// The columns `votes` and `selection_votes` of certificates.tsv: CLASS:VOTES,... in ascending order
// of class, without the classes that got none, such as 3:99800,5:200. "-" where no class got a
// vote, and in rows that come from tables of earlier versions, which kept two counts of all.
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// Reads the next field, the column `name`, in time linear in its length.
Tally read_tally(FieldReader& fields, std::string_view name);
std::string format_tally(const Tally& tally);

/// Why the votes of all classes disagree with the other counts of the row; empty if they agree.
std::string_view contradiction_in_tallies(const CertificateRow& row);

}  // namespace fedsmooth
