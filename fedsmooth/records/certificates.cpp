#include "fedsmooth/records/certificates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/records/certificate_columns.h"
#include "fedsmooth/records/field_reader.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/records/published.h"
#include "fedsmooth/records/rule_columns.h"
#include "fedsmooth/records/tally_columns.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kVoid = "void\t";

constexpr int64_t kMaxIndex = 0xffffffff;  // of an image, as in certify()

bool is_class(int64_t label) { return label >= 0 && label <= kMaxClass; }

// Returns why a row contradicts itself or is out of range; empty if it does not and is not.
std::string_view contradiction(const CertificateRow& row, double printed_radius, int64_t correct) {
  const Certificate& c = row.certificate;
  const Counts& counts = c.counts;
  if (!is_class(counts.selected) && counts.selected != kAbstain) return "selected is out of range";
  if (is_class(c.predict) && c.predict != counts.selected) {
    return "predict is not the selected class";
  }
  const std::string_view wrong = contradiction_in_answer(row, correct);
  if (!wrong.empty()) return wrong;
  if (row.n0 < 1 || row.n0 > kMaxVotes) return "n0 must be from 1 to 2^32";
  if (counts.n < 0 || counts.n > kMaxVotes) return "n must be from 0 to 2^32";
  if (counts.n == 0 && (row.abstained() || row.correct() || c.radius != 0)) {
    return "only a wrong class is left without votes";
  }
  if (counts.top < 0 || counts.top > counts.n) return "count_top must lie between 0 and n";
  if (counts.runner_up < 0 || counts.runner_up > counts.n - counts.top) {
    return "count_runner_up must lie between 0 and n - count_top";
  }
  // Groups first, as the votes are compared with their gaps.
  if (const auto wrong = contradiction_in_groups(row); !wrong.empty()) return wrong;
  if (const auto wrong = contradiction_in_tallies(row); !wrong.empty()) return wrong;
  if (!(c.p_lower >= 0 && c.p_lower <= 1)) return "p_lower must lie between 0 and 1";
  if (!is_level(row.alpha)) return "alpha must be at least 1e-50 and below 1";
  if (!(row.sigma > 0 && row.sigma <= kLargestSigma)) {
    return "sigma must be positive, at most 1e30";
  }
  if (!(c.radius >= 0)) return "radius_exact must not be negative";
  if (!(printed_radius >= 0 && printed_radius <= c.radius)) {
    return "radius must lie between 0 and radius_exact";
  }
  return contradiction_in_rule(row);
}

[[noreturn]] void refuse_void(std::string_view line, const std::string& name) {
  throw Error("{}: is void: {}; certify again into another table", name,
              line.substr(kVoid.size(), 200));
}

CertificateRow check_row(ParsedRow parsed, const std::string& where) {
  const std::string_view wrong = contradiction(parsed.row, parsed.printed_radius, parsed.correct);
  if (!wrong.empty()) throw Error("{}: {}", where, wrong);
  return std::move(parsed.row);
}

}  // namespace

const NoiseLaw& CertificateRow::law() const {
  check(noise != nullptr, "row {}: no noise law", index);
  return *noise;
}

std::string format_radius(double radius) {
  if (radius == 0) return "0.0";
  // The shortest digits that read back as `radius`; cutting them off can only make it smaller.
  char buffer[32];
  const auto [end, status] =
      std::to_chars(buffer, buffer + sizeof(buffer), radius, std::chars_format::scientific);
  check(status == std::errc{} && std::isfinite(radius), "format_radius: {}", radius);
  const std::string_view shortest(buffer, end - buffer);
  const size_t e = shortest.find('e');
  const std::string cut = fmt::format("{:.4}{}", shortest.substr(0, e), shortest.substr(e));
  const double value = *parse_number<double>(cut);
  const int exponent = std::stoi(cut.substr(cut.find('e') + 1));
  const int decimals = std::max(0, 2 - exponent);
  return exponent < -5 ? fmt::format("{:.2e}", value) : fmt::format("{:.{}f}", value, decimals);
}

std::string_view contradiction_in_answer(const CertificateRow& row, int64_t correct) {
  const int64_t predict = row.certificate.predict;
  if (row.index < 0 || row.index > kMaxIndex) return "idx is out of range";
  if (!is_class(row.label)) return "label is out of range";
  if (!is_class(predict) && !row.abstained()) return "predict is out of range";
  if (correct != row.correct()) return "correct does not follow from predict and label";
  if (row.abstained() && row.certificate.radius != 0) return "an abstention has no radius";
  return {};
}

std::string certificate_header() {
  std::string header;
  for (const Column& column : certificate_columns()) header += fmt::format("{}\t", column.name);
  header.back() = '\n';
  return header;
}

std::string format_row(const CertificateRow& row) {
  check(row.base.find_first_of("\t\n") == std::string::npos,
        "format_row: a tab or line end in the base classifier's description: {}", row.base);
  std::string line;
  for (const Column& column : certificate_columns()) line += column.show(row) + "\t";
  line.back() = '\n';
  return line;
}

std::string format_void(std::string_view reason) { return fmt::format("{}{}\n", kVoid, reason); }

bool is_void(std::string_view line) { return line.starts_with(kVoid); }

std::string void_reason(std::string_view line) {
  line.remove_prefix(kVoid.size());
  return std::string(line.substr(0, line.find('\n')));
}

const char* rule_name(VoteRule rule) {
  switch (rule) {
    case VoteRule::kFixed:
      return "fixed";
    case VoteRule::kRadii:
      return "radii";
    case VoteRule::kPlan:
      return "plan";
  }
  return "";
}

const char* radius_name(RadiusKind radius) {
  return radius == RadiusKind::kMulticlass ? "multiclass" : "one-sided";
}

std::string_view unsupported(const CertificateRow& row, RadiusKind radius) {
  const Certificate& claimed = row.certificate;
  if (row.rule == VoteRule::kRadii) return unsupported_radii(row);
  const Certificate c =
      certificate_from_counts(claimed.counts, row.sigma, row.alpha, radius, row.law());
  if (claimed.counts.n == 0) return {};  // nothing is claimed
  if (!row.abstained() && c.predict == kAbstain) return "its counts support no answer";
  if (claimed.p_lower > c.p_lower * (1 + kRounding)) {
    return "p_lower is above what its counts support";
  }
  // The tolerance is relative to sigma: near p_lower = 1/2 the last digit of p_lower changes many
  // digits of a tiny radius.
  if (claimed.radius > c.radius + kRounding * row.sigma) {
    return "radius_exact is above what its counts support";
  }
  return {};
}

void check_row_count(std::string_view text, const std::string& name) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (lines > kMaxRows) {
    throw Error("{}: has {} lines; a table may have {} rows", name, lines, kMaxRows);
  }
}

std::vector<CertificateRow> parse_certificates(std::string_view text, const std::string& name) {
  if (text.find('\n') == std::string_view::npos && certificate_header().starts_with(text))
    return {};
  if (is_published(text)) {
    throw Error("{}: is a published table, without counts; report, plot and compare read it", name);
  }
  const TableColumns columns(text, name);
  check_row_count(text, name);
  std::vector<CertificateRow> rows;
  std::unordered_set<int64_t> seen;
  text.remove_prefix(columns.header_size());
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::string where = fmt::format("{}:{}", name, rows.size() + 2);
    const std::string_view line = text.substr(0, end);
    if (is_void(line)) refuse_void(line, name);
    rows.push_back(check_row(columns.read(line, where), where));
    if (rows.back().subject != rows.front().subject) {
      throw Error("{}: subject is not that of the first row", where);
    }
    if (!seen.insert(rows.back().index).second) {
      throw Error("{}: idx {} occurs twice", where, rows.back().index);
    }
  }
  if (is_void(text)) refuse_void(text, name);  // a kill cut the line's end off
  return rows;
}

}  // namespace fedsmooth
