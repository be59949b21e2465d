// certificates.tsv: one row per certified image. The first six columns are those that the analysis
// scripts of locuslab/smoothing read; the rest is what the radius rests on, so that it can be
// recomputed, by every reader and at another alpha, without the model. A table whose classifier
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
  const NoiseLaw* noise = nullptr;  // of the votes; read by law()
  bool shared = false;  // other images had the same draws, as --noise-bank had it until 0.2
  VoteRule rule = VoteRule::kFixed;
  int64_t cap = 0;    // the most votes that it could get
  double beta = 0.0;  // under VoteRule::kRadii, as are radii
  std::vector<double> radii =
      {};  // ascending, the first is 0; certificate.latches has those certified
  /// Of several groups: the malicious clients that the radius is against. None: one network.
  std::optional<int64_t> malicious = {};
  /// Binds the row to its table, see digest_subject(); empty in tables of earlier versions, whose
  /// rows are unbound.
  std::string subject = {};
  /// From a table of six columns, see published.h: n0, alpha, sigma and the votes are 0 unless the
  /// reader was told them, and there are no counts from which the radius could be recomputed.
  bool published = false;

  /// A Bug if no law was set: none is assumed.
  const NoiseLaw& law() const;
  bool abstained() const { return certificate.predict == kAbstain; }
  bool correct() const { return certificate.predict == label; }
  /// Whether votes were drawn: --only-correct leaves out what is wrong anyway.
  bool estimated() const { return published || certificate.counts.n > 0; }
};

/// The header line, and a row as a line, both with their line end. Numbers are written so that they
/// read back bit for bit.
std::string certificate_header();
std::string format_row(const CertificateRow& row);

/// The line that makes a table void, and whether a line is one.
std::string format_void(std::string_view reason);
bool is_void(std::string_view line);
/// Returns the reason in a line that format_void() made.
std::string void_reason(std::string_view line);

/// Parses a whole file; `name` stands in error messages. A last line without its end was cut off by
/// a kill and is left out, be it the header; anything else that is wrong is an Error with its line
/// number, and so are a void table and one of more than kMaxRows. Older tables, which lack the last
/// columns, are accepted; published ones, without counts, are refused by name. Whether counts
/// support the radii is for read_certificates() to check.
std::vector<CertificateRow> parse_certificates(std::string_view text, const std::string& name);

inline constexpr int64_t kMaxRows = 1'000'000;
/// The largest class. Summaries keep an array over classes, which a damaged one must not blow up.
inline constexpr int64_t kMaxClass = 999'999;
/// An Error if there are more, before time and memory are spent on them.
void check_row_count(std::string_view text, const std::string& name);

/// Why idx, label, predict, correct and radius cannot go together; empty if they can.
std::string_view contradiction_in_answer(const CertificateRow& row, int64_t correct);

/// Why a row claims more than its counts support under this kind of radius; empty if it does not.
/// Under VoteRule::kRadii these are the counts at which each radius was certified: what a fixed
/// number of votes would support does not hold for votes that were stopped early.
std::string_view unsupported(const CertificateRow& row, RadiusKind radius);

/// The names of a radius kind and a rule in tables.
const char* radius_name(RadiusKind radius);
const char* rule_name(VoteRule rule);

/// Three significant digits, rounded down: a printed radius is never larger than the proved one.
/// Plain decimals from 1e-5 on. `radius` is finite and not negative.
std::string format_radius(double radius);

}  // namespace fedsmooth
