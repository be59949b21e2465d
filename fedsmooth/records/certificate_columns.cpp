#include "fedsmooth/records/certificate_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "fedsmooth/base/error.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/records/rule_columns.h"
#include "fedsmooth/records/tally_columns.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kUnbound = "-";
constexpr std::string_view kExactSuffix = "/exact-noise", kSharedSuffix = "/noise-bank";

// H:MM:SS.ffffff: Python's str(timedelta), as in Cohen's logs, but always with the fraction.
std::string format_duration(double seconds) {
  const int64_t microseconds = std::llround(seconds * 1e6);
  const int64_t whole = microseconds / 1'000'000;
  return fmt::format("{}:{:02}:{:02}.{:06}", whole / 3600, whole / 60 % 60, whole % 60,
                     microseconds % 1'000'000);
}

// A column of a member that is a number or text: `member` maps a row to a reference to it.
template <typename Member>
Column plain(std::string_view name, int since, Member member) {
  return {name, since,
          [member](FieldReader& fields, ParsedRow& parsed) {
            auto& value = member(parsed.row);
            using Value = std::remove_reference_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, std::string>) {
              value = fields.text();
            } else {
              value = fields.number<Value>();
            }
          },
          [member](const CertificateRow& row) { return fmt::format("{}", member(row)); }};
}

void read_noise(FieldReader& fields, ParsedRow& parsed) {
  parsed.row.noise = find_law(fields.text());
  if (parsed.row.noise == nullptr) fields.refuse("noise must be one of " + list_laws());
}

void read_shared(FieldReader& fields, ParsedRow& parsed) {
  const std::string value = fields.text();
  if (value != "0" && value != "1") fields.refuse("shared must be 0 or 1");
  parsed.row.shared = value == "1";
}

void read_subject(FieldReader& fields, ParsedRow& parsed) {
  const std::string value = fields.text();
  if (value == kUnbound) return;
  if (value.size() != 16 || value.find_first_not_of("0123456789abcdef") != std::string::npos) {
    fields.refuse("subject must be 16 hexadecimal digits or -");
  }
  parsed.row.subject = value;
}

// A column of the votes of all classes: `member` maps a row to a reference to them.
template <typename Member>
Column tally(std::string_view name, Member member) {
  return {name, 4,
          [name, member](FieldReader& fields, ParsedRow& parsed) {
            member(parsed.row) = read_tally(fields, name);
          },
          [member](const CertificateRow& row) { return format_tally(member(row)); }};
}

std::vector<Column> make_columns() {
  using Row = const CertificateRow&;
  return {
      plain(
          "idx", 0, [](auto& r) -> auto& { return r.index; }),
      plain(
          "label", 0, [](auto& r) -> auto& { return r.label; }),
      plain(
          "predict", 0, [](auto& r) -> auto& { return r.certificate.predict; }),
      {"radius", 0, [](FieldReader& f, ParsedRow& p) { p.printed_radius = f.number<double>(); },
       [](Row r) { return format_radius(r.certificate.radius); }},
      {"correct", 0, [](FieldReader& f, ParsedRow& p) { p.correct = f.number<int64_t>(); },
       [](Row r) { return fmt::format("{:d}", r.correct()); }},
      {"time", 0, [](FieldReader& f, ParsedRow& p) { p.row.seconds = f.duration(); },
       [](Row r) { return format_duration(r.seconds); }},
      plain(
          "selected", 0, [](auto& r) -> auto& { return r.certificate.counts.selected; }),
      plain(
          "n0", 0, [](auto& r) -> auto& { return r.n0; }),
      plain(
          "n", 0, [](auto& r) -> auto& { return r.certificate.counts.n; }),
      plain(
          "count_top", 0, [](auto& r) -> auto& { return r.certificate.counts.top; }),
      plain(
          "count_runner_up", 0, [](auto& r) -> auto& { return r.certificate.counts.runner_up; }),
      plain(
          "p_lower", 0, [](auto& r) -> auto& { return r.certificate.p_lower; }),
      plain(
          "alpha", 0, [](auto& r) -> auto& { return r.alpha; }),
      plain(
          "sigma", 0, [](auto& r) -> auto& { return r.sigma; }),
      plain(
          "radius_exact", 0, [](auto& r) -> auto& { return r.certificate.radius; }),
      plain(
          "seed", 0, [](auto& r) -> auto& { return r.seed; }),
      plain(
          "base", 0, [](auto& r) -> auto& { return r.base; }),
      {"noise", 1, read_noise, [](Row r) { return std::string(r.law().name); }},
      {"shared", 1, read_shared, [](Row r) { return fmt::format("{:d}", r.shared); }},
      {"rule", 2, [](FieldReader& f, ParsedRow& p) { p.row.rule = read_rule(f); },
       [](Row r) { return std::string(rule_name(r.rule)); }},
      plain(
          "cap", 2, [](auto& r) -> auto& { return r.cap; }),
      plain(
          "beta", 2, [](auto& r) -> auto& { return r.beta; }),
      {"radii", 2, [](FieldReader& f, ParsedRow& p) { read_radii(f, p.row); }, format_radii},
      {"subject", 3, read_subject,
       [](Row r) { return r.subject.empty() ? std::string(kUnbound) : r.subject; }},
      tally(
          "votes", [](auto& r) -> auto& { return r.certificate.counts.votes; }),
      tally(
          "selection_votes", [](auto& r) -> auto& { return r.certificate.counts.selection; }),
      {"malicious", 4, [](FieldReader& f, ParsedRow& p) { p.row.malicious = read_malicious(f); },
       format_malicious},
      {"gaps", 4,
       [](FieldReader& f, ParsedRow& p) { p.row.certificate.counts.gaps = read_gaps(f); },
       format_gaps},
  };
}

}  // namespace

const std::vector<Column>& certificate_columns() {
  static const std::vector<Column> columns = make_columns();
  return columns;
}

TableColumns::TableColumns(std::string_view text, const std::string& name)
    : header_(text.substr(0, text.find('\n'))), names_(split_tabs(header_)) {
  const std::vector<Column>& all = certificate_columns();
  constexpr size_t kPublishedColumns = 6;
  for (size_t i = 0; i < kPublishedColumns; ++i) {
    if (i < names_.size() && names_[i] == all[i].name) continue;
    throw Error("{}:1: not the header of a certificates.tsv; fedsmooth certify writes one", name);
  }
  int latest = 0;
  for (const std::string_view column : names_) {
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const Column& c) { return c.name == column; });
    if (known == all.end()) {
      throw Error("{}:1: column {:?} is not known to this version", name, column.substr(0, 40));
    }
    if (std::find(columns_.begin(), columns_.end(), &*known) != columns_.end()) {
      throw Error("{}:1: column {} occurs twice", name, column);
    }
    columns_.push_back(&*known);
    latest = std::max(latest, known->since);
  }
  for (const Column& column : all) {
    if (column.since <= latest && !has(column.name)) {
      throw Error("{}:1: column {} is missing", name, column.name);
    }
  }
}

bool TableColumns::has(std::string_view column) const {
  return std::find(names_.begin(), names_.end(), column) != names_.end();
}

ParsedRow TableColumns::read(std::string_view line, std::string where) const {
  FieldReader fields(line, std::move(where), names_);
  ParsedRow parsed;
  for (const Column* column : columns_) column->read(fields, parsed);
  CertificateRow& row = parsed.row;
  if (!has("noise")) {
    row.noise = &kCutFloatNoise;
    take_noise_from_base(row);
  }
  if (!has("rule")) row.cap = row.certificate.counts.n;
  return parsed;
}

void take_noise_from_base(CertificateRow& row) {
  const auto take = [&](std::string_view suffix) {
    const bool found = row.base.ends_with(suffix);
    if (found) row.base.resize(row.base.size() - suffix.size());
    return found;
  };
  if (take(kSharedSuffix)) row.shared = true;
  if (take(kExactSuffix)) row.noise = &kExactNoise;
}

}  // namespace fedsmooth
