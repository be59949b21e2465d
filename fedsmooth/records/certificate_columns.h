// The columns of certificates.tsv, found by their names in the header. The first six are those of
// published tables, in their order. Tables of earlier versions lack the later ones: 0.1 had 17
// columns, and its `base` ended in words for what `noise` and `shared` say since; then came `rule`
// and what follows from it (see rule_columns.h), then `subject`, without which rows are unbound,
// and last the votes of all classes (see tally_columns.h) and what several groups have (see
// group_columns.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// A row while it is read, with columns that repeat what follows from others.
struct ParsedRow {
  CertificateRow row;
  double printed_radius = 0.0;
  int64_t correct = 0;
};

struct Column {
  std::string_view name;
  int since;  // 0: every table has it; else those that have any column of this number, or later
  std::function<void(FieldReader&, ParsedRow&)> read;
  std::function<std::string(const CertificateRow&)> show;
};

/// Every column of this version, in the order in which it writes them.
const std::vector<Column>& certificate_columns();

/// The columns of one table, as its header names them.
class TableColumns {
 public:
  /// An Error unless the text begins with a line that names columns of this version, each once, and
  /// none is missing.
  TableColumns(std::string_view text, const std::string& name);
  TableColumns(const TableColumns&) = delete;
  TableColumns& operator=(const TableColumns&) = delete;

  /// Length of the header, with its line end.
  size_t header_size() const { return header_.size() + 1; }
  /// Reads a line. What the table leaves out gets the value that it had before there was a column.
  ParsedRow read(std::string_view line, std::string where) const;

 private:
  bool has(std::string_view column) const;

  std::string header_;
  std::vector<std::string_view> names_;  // parts of header_
  std::vector<const Column*> columns_;
};

/// Version 0.1 wrote noise kind and shared draws as endings of `base`; takes them from there.
void take_noise_from_base(CertificateRow& row);

}  // namespace fedsmooth
