#include "fedsmooth/records/certificate_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
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

// Rows differ in the column, and the identity says nothing about it.
Statement row_by_row() {
  return {[](CertificateRow&, const CertificateIdentity&) {},
          [](const CertificateRow&, const CertificateIdentity&) { return true; }};
}

// Rows differ in the column, within bounds of the identity.
Statement bounded(Statement::Fits fits) { return {row_by_row().share, std::move(fits)}; }

// All rows have the value that `stated`, a function or a member, returns for the identity; any
// value is right if it returns none.
template <typename Member, typename Stated>
Statement common(Member member, Stated stated) {
  return {[=](CertificateRow& row, const CertificateIdentity& i) {
            if (const auto& value = std::invoke(stated, i)) member(row) = *value;
          },
          [=](const CertificateRow& row, const CertificateIdentity& i) {
            const auto& value = std::invoke(stated, i);
            return !value || member(row) == *value;
          }};
}

// A column of a member that is a number or text: `member` maps a row to a reference to it.
template <typename Member>
Column plain(std::string_view name, int since, Member member, Statement statement) {
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
          [member](const CertificateRow& row) { return fmt::format("{}", member(row)); },
          std::move(statement)};
}

template <typename Member>
Column each_row(std::string_view name, int since, Member member) {
  return plain(name, since, member, row_by_row());
}

template <typename Member, typename Stated>
Column all_rows(std::string_view name, int since, Member member, Stated stated) {
  return plain(name, since, member, common(member, stated));
}

// Version 0.1 encoded `noise` and `shared` as suffixes of the identity's `base`.
std::optional<std::string> base_of(const CertificateIdentity& i) {
  CertificateRow row;
  row.base = i.base.value_or("");
  take_noise_from_base(row);
  return i.base ? std::optional(row.base) : std::nullopt;
}

bool has_number_of_votes(const CertificateRow& row, const CertificateIdentity& i) {
  if (!i.n || i.rule() != VoteRule::kFixed) return true;
  const bool left_out = i.only_correct.value_or(false) && row.certificate.counts.n == 0;
  return left_out || row.certificate.counts.n == *i.n;
}

// With given radii n may be raised later, and earlier rows keep their cap.
bool has_cap(const CertificateRow& row, const CertificateIdentity& i) {
  if (!i.n || i.rule() == VoteRule::kFixed) return true;
  const bool left_out = i.only_correct.value_or(false) && row.certificate.counts.n == 0;
  return left_out || (i.rule() == VoteRule::kRadii ? row.cap <= *i.n : row.cap == *i.n);
}

bool has_gaps_of_its_groups(const CertificateRow& row, const CertificateIdentity& i) {
  const Gaps& gaps = row.certificate.counts.gaps;
  return gaps.empty() || groups_of(gaps) == i.groups;
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
          [member](const CertificateRow& row) { return format_tally(member(row)); },
          bounded([member](const CertificateRow& row, const CertificateIdentity& i) {
            const Tally& votes = member(row);
            return !i.classes || votes.empty() || votes.back().label < *i.classes;
          })};
}

std::vector<Column> make_columns() {
  using Row = const CertificateRow&;
  using Identity = CertificateIdentity;
  const auto noise = [](auto& r) -> auto& { return r.noise; };
  const auto shared = [](auto& r) -> auto& { return r.shared; };
  const auto rule = [](auto& r) -> auto& { return r.rule; };
  const auto cap = [](auto& r) -> auto& { return r.cap; };
  const auto radii = [](auto& r) -> auto& { return r.radii; };
  const auto subject = [](auto& r) -> auto& { return r.subject; };
  const auto malicious = [](auto& r) -> auto& { return r.malicious; };
  return {
      each_row(
          "idx", 0, [](auto& r) -> auto& { return r.index; }),
      each_row(
          "label", 0, [](auto& r) -> auto& { return r.label; }),
      each_row(
          "predict", 0, [](auto& r) -> auto& { return r.certificate.predict; }),
      {"radius", 0, [](FieldReader& f, ParsedRow& p) { p.printed_radius = f.number<double>(); },
       [](Row r) { return format_radius(r.certificate.radius); }, row_by_row()},
      {"correct", 0, [](FieldReader& f, ParsedRow& p) { p.correct = f.number<int64_t>(); },
       [](Row r) { return fmt::format("{:d}", r.correct()); }, row_by_row()},
      {"time", 0, [](FieldReader& f, ParsedRow& p) { p.row.seconds = f.duration(); },
       [](Row r) { return format_duration(r.seconds); }, row_by_row()},
      each_row(
          "selected", 0, [](auto& r) -> auto& { return r.certificate.counts.selected; }),
      all_rows(
          "n0", 0, [](auto& r) -> auto& { return r.n0; }, &Identity::n0),
      plain(
          "n", 0, [](auto& r) -> auto& { return r.certificate.counts.n; },
          bounded(has_number_of_votes)),
      each_row(
          "count_top", 0, [](auto& r) -> auto& { return r.certificate.counts.top; }),
      each_row(
          "count_runner_up", 0, [](auto& r) -> auto& { return r.certificate.counts.runner_up; }),
      each_row(
          "p_lower", 0, [](auto& r) -> auto& { return r.certificate.p_lower; }),
      all_rows(
          "alpha", 0, [](auto& r) -> auto& { return r.alpha; }, &Identity::alpha),
      all_rows(
          "sigma", 0, [](auto& r) -> auto& { return r.sigma; }, &Identity::sigma),
      each_row(
          "radius_exact", 0, [](auto& r) -> auto& { return r.certificate.radius; }),
      all_rows(
          "seed", 0, [](auto& r) -> auto& { return r.seed; }, &Identity::seed),
      all_rows(
          "base", 0, [](auto& r) -> auto& { return r.base; }, base_of),
      {"noise", 1, read_noise, [](Row r) { return std::string(r.law().name); },
       common(noise, [](const Identity& i) { return std::optional(&i.law()); })},
      {"shared", 1, read_shared, [](Row r) { return fmt::format("{:d}", r.shared); },
       common(shared,
              [](const Identity& i) { return std::optional(i.noise_bank.value_or(false)); })},
      {"rule", 2, [](FieldReader& f, ParsedRow& p) { p.row.rule = read_rule(f); },
       [](Row r) { return std::string(rule_name(r.rule)); },
       common(rule, [](const Identity& i) { return std::optional(i.rule()); })},
      plain("cap", 2, cap, {common(cap, &Identity::n).share, has_cap}),
      all_rows(
          "beta", 2, [](auto& r) -> auto& { return r.beta; }, &Identity::beta),
      {"radii", 2, [](FieldReader& f, ParsedRow& p) { read_radii(f, p.row); }, format_radii,
       common(radii,
              [](const Identity& i) {
                return std::optional(i.radii.value_or(std::vector<double>()));
              })},
      {"subject", 3, read_subject,
       [](Row r) { return r.subject.empty() ? std::string(kUnbound) : r.subject; },
       common(subject, [](const Identity& i) { return std::optional(i.subject.value_or("")); })},
      tally(
          "votes", [](auto& r) -> auto& { return r.certificate.counts.votes; }),
      tally(
          "selection_votes", [](auto& r) -> auto& { return r.certificate.counts.selection; }),
      {"malicious", 4, [](FieldReader& f, ParsedRow& p) { p.row.malicious = read_malicious(f); },
       format_malicious,
       common(malicious, [](const Identity& i) { return std::make_optional(i.malicious); })},
      {"gaps", 4,
       [](FieldReader& f, ParsedRow& p) { p.row.certificate.counts.gaps = read_gaps(f); },
       format_gaps, bounded(has_gaps_of_its_groups)},
  };
}

}  // namespace

const std::vector<Column>& certificate_columns() {
  static const std::vector<Column> columns = make_columns();
  return columns;
}

CertificateRow row_of(const CertificateIdentity& identity) {
  CertificateRow row;
  for (const Column& column : certificate_columns()) column.statement.share(row, identity);
  return row;
}

std::string_view column_difference(const CertificateRow& row, const CertificateIdentity& identity) {
  for (const Column& column : certificate_columns()) {
    if (!column.statement.fits(row, identity)) return column.name;
  }
  return {};
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
