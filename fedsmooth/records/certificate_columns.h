// The columns of certificates.tsv, found by their names in the header. The first six are those of
// published tables, in their order. Tables of earlier versions lack later columns: version 0.1 had
// 17 columns and encoded noise kind and shared draws as suffixes of `base`. Added since, in this
// order: noise and shared; the rule's columns (rule_columns.h); subject, without which rows are
// unbound; the votes of all classes (tally_columns.h) and the columns of groups (group_columns.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fedsmooth/records/certificate_identity.h"
#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {

/// A row that is being read, with the columns that follow from others and are checked against them.
struct ParsedRow {
  CertificateRow row;
  double printed_radius = 0.0;
  int64_t correct = 0;
};

/// States what a table's identity says about a column. Every column must have one: no default
/// stands in for a column that was forgotten.
struct Statement {
  using Share = std::function<void(CertificateRow&, const CertificateIdentity&)>;
  using Fits = std::function<bool(const CertificateRow&, const CertificateIdentity&)>;
  Statement(Share share_, Fits fits_) : share(std::move(share_)), fits(std::move(fits_)) {}

  /// Sets the column to the value that the identity states for all rows; does nothing if it states
  /// none.
  Share share;
  /// Returns whether a row with this column may stand in a table of this identity. A field that the
  /// identity leaves out is not compared.
  Fits fits;
};

struct Column {
  std::string_view name;
  /// Format in which the column was added; 0: every table has it. A table with any column of
  /// format i must have all columns of formats up to i.
  int since;
  std::function<void(FieldReader&, ParsedRow&)> read;
  std::function<std::string(const CertificateRow&)> show;
  Statement statement;
};

/// Returns all columns of this version, in the order in which they are written.
const std::vector<Column>& certificate_columns();

/// Returns a row with the values that all rows of a table of this identity share.
CertificateRow row_of(const CertificateIdentity& identity);

/// Returns the first column in which a row differs from an identity; empty if none does.
std::string_view column_difference(const CertificateRow& row, const CertificateIdentity& identity);

/// The columns of one table, as its header names them.
class TableColumns {
 public:
  /// Reads the first line of `text`; `name` is the file's, for messages. Throws an Error if the
  /// line is no header of certificates, names an unknown column or one twice, or lacks a column.
  TableColumns(std::string_view text, const std::string& name);
  TableColumns(const TableColumns&) = delete;
  TableColumns& operator=(const TableColumns&) = delete;

  /// Returns the length of the header in bytes, with its line end.
  size_t header_size() const { return header_.size() + 1; }
  /// Reads a line. A column that the table lacks gets the value that all tables without it imply.
  /// Throws an Error that begins with `where` if a field is not as expected.
  ParsedRow read(std::string_view line, std::string where) const;

 private:
  bool has(std::string_view column) const;

  std::string header_;
  std::vector<std::string_view> names_;  // parts of header_
  std::vector<const Column*> columns_;
};

/// Removes the suffixes of `base` in which version 0.1 encoded noise kind and shared draws, and
/// sets `noise` and `shared` from them.
void take_noise_from_base(CertificateRow& row);

}  // namespace fedsmooth
