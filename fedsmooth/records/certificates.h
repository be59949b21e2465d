// certificates.tsv: one row per certified image. The first six columns are those that the analysis
// scripts of locuslab/smoothing read. The others hold the counts behind the radius, so that any
// reader can recompute it, at another alpha too, without the model. A table whose classifier
// changed while it was made ends with a line that begins with "void", and is refused.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

struct CertificateRow {
  int64_t index = 0;
  int64_t label = 0;
  double seconds = 0.0;  // kept to the microsecond
  int64_t n0 = 0;
  double alpha = 0.0;
  double sigma = 0.0;
  uint64_t seed = 0;
  std::string base;  // BaseClassifier::description; no tab, no line end
  Certificate certificate;
  const NoiseLaw* noise = nullptr;  // of the votes; read it by law()
  bool shared = false;              // images shared their draws (--noise-bank, until version 0.2)
  VoteRule rule = VoteRule::kFixed;
  int64_t cap = 0;    // most votes that the image could get
  double beta = 0.0;  // set under VoteRule::kRadii only
  /// Set under VoteRule::kRadii only: ascending, the first is 0. certificate.latches has an entry
  /// for each of those that were certified.
  std::vector<double> radii = {};
  /// For several groups: the number of malicious clients against which the radius holds. None: one
  /// network.
  std::optional<int64_t> malicious = {};
  /// Binds the row to its table, see digest_subject(); empty in tables of earlier versions, whose
  /// rows are unbound.
  std::string subject = {};
  /// The row is from a table of six columns (see published.h): n0, alpha, sigma and the votes are 0
  /// unless the reader was told them, and the radius cannot be recomputed.
  bool published = false;

  /// Returns the noise law. A Bug if none was set: no law is assumed.
  const NoiseLaw& law() const;
  bool abstained() const { return certificate.predict == kAbstain; }
  bool correct() const { return certificate.predict == label; }
  /// Returns whether votes were drawn. With --only-correct, wrongly classified images get none.
  bool estimated() const { return published || certificate.counts.n > 0; }
};

/// Returns the header line, with its line end.
std::string certificate_header();
/// Returns a row as a line, with its line end. Except for the time and the printed radius, numbers
/// read back bit for bit.
std::string format_row(const CertificateRow& row);

/// Returns the line that makes a table void, with its line end.
std::string format_void(std::string_view reason);
/// Returns whether a line makes its table void.
bool is_void(std::string_view line);
/// Returns the reason in a line that format_void() made.
std::string void_reason(std::string_view line);

/// Parses a whole file; `name` is its name in messages. A last line without its end (a kill cut it
/// off), even the header, is left out. Throws an Error, with the line number, if anything else is
/// wrong, and for a void table or more than kMaxRows lines. Accepts tables of earlier versions,
/// which lack the last columns; refuses published ones. Does not check whether counts support the
/// radii: read_certificates() does.
std::vector<CertificateRow> parse_certificates(std::string_view text, const std::string& name);

inline constexpr int64_t kMaxRows = 1'000'000;
/// The largest class. It bounds the arrays over classes that a damaged row could make summaries
/// allocate.
inline constexpr int64_t kMaxClass = 999'999;
/// Throws an Error if `text` has more than kMaxRows lines. Call it before parsing, which takes time
/// and memory.
void check_row_count(std::string_view text, const std::string& name);

/// Returns why idx, label, predict, `correct` and radius contradict each other; empty if they do
/// not.
std::string_view contradiction_in_answer(const CertificateRow& row, int64_t correct);

/// Returns why a row claims more than its counts support under this kind of radius; empty if it
/// does not. Under VoteRule::kRadii the counts are those at which each radius was certified,
/// because bounds for a fixed number of votes do not hold for votes that were stopped early.
std::string_view unsupported(const CertificateRow& row, RadiusKind radius);

/// Return the name of a radius kind or of a rule in tables.
const char* radius_name(RadiusKind radius);
const char* rule_name(VoteRule rule);

/// Formats a radius, finite and not negative, to three significant digits. It is rounded down, so
/// that a printed radius never exceeds the proved one. From 1e-5 on it is a plain decimal.
std::string format_radius(double radius);

}  // namespace fedsmooth
