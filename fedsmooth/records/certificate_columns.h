// The columns of certificates.tsv, which became more: version 0.1 had 17, in which `base` ended in
// words for what `noise` and `shared` say since; tables of 19 do not have `rule` and what follows,
// for which see rule_columns.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// The header with which a text begins, of this version or an older one, with its line end; empty
/// if there is none.
std::string find_header(std::string_view text);
/// The names in a header.
std::vector<std::string_view> columns_of(std::string_view header);

/// Version 0.1 wrote noise kind and shared draws as endings of `base`; takes them from there.
void take_noise_from_base(CertificateRow& row);
/// `noise` and `shared`, or what `base` says in their place if the line ends before.
void read_noise_columns(FieldReader& fields, CertificateRow& row);

}  // namespace fedsmooth
