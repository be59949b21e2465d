#include "fedsmooth/records/certificates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader =
    "idx\tlabel\tpredict\tradius\tcorrect\ttime\tselected\tn0\tn\tcount_top\tcount_runner_up\t"
    "p_lower\talpha\tsigma\tradius_exact\tseed\tbase\tnoise\tshared\n";
constexpr size_t kColumns = 19;
// Version 0.1 had neither of the last two: its `base` ended in these words instead.
constexpr size_t kOldColumns = 17;
constexpr std::string_view kExactSuffix = "/exact-noise", kSharedSuffix = "/noise-bank";
constexpr std::string_view kVoid = "void\t";

std::string old_header() {
  size_t end = 0;
  for (size_t i = 0; i < kOldColumns; ++i) end = kHeader.find('\t', end) + 1;
  return std::string(kHeader.substr(0, end - 1)) + "\n";
}

// Summaries keep an array over classes, which a damaged label must not blow up.
constexpr int64_t kMaxClass = 999'999;
constexpr int64_t kMaxIndex = 0xffffffff;  // of an image, as in certify()
constexpr int64_t kMaxVotes = int64_t{1} << 32;
constexpr double kMaxSigma = 1e30;
// Two versions of Boost may differ in a last digit.
constexpr double kTolerance = 1e-12;

/// Python's str(timedelta), as in Cohen's logs, but always with the fraction.
std::string format_duration(double seconds) {
  const int64_t microseconds = std::llround(seconds * 1e6);
  const int64_t whole = microseconds / 1'000'000;
  return fmt::format("{}:{:02}:{:02}.{:06}", whole / 3600, whole / 60 % 60, whole % 60,
                     microseconds % 1'000'000);
}

/// The number that is the whole of `text`.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc{} || stop != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

std::optional<double> parse_duration(std::string_view text) {
  constexpr std::string_view kTail = ":MM:SS.ffffff";
  if (text.size() <= kTail.size()) return std::nullopt;
  const std::string_view tail = text.substr(text.size() - kTail.size());
  if (tail[0] != ':' || tail[3] != ':' || tail[6] != '.') return std::nullopt;
  const auto hours = parse_number<uint16_t>(text.substr(0, text.size() - kTail.size()));
  const auto minutes = parse_number<uint16_t>(tail.substr(1, 2));
  const auto seconds = parse_number<uint16_t>(tail.substr(4, 2));
  const auto microseconds = parse_number<uint32_t>(tail.substr(7));
  if (!hours || !minutes || !seconds || !microseconds) return std::nullopt;
  if (*minutes > 59 || *seconds > 59) return std::nullopt;
  const int64_t whole = (int64_t{*hours} * 60 + *minutes) * 60 + *seconds;
  return static_cast<double>(whole * 1'000'000 + *microseconds) / 1e6;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

/// Takes the fields of one line in the order of the header.
class FieldReader {
 public:
  FieldReader(std::string_view line, std::string where, size_t columns)
      : fields_(split(line)), where_(std::move(where)) {
    if (fields_.size() != columns) {
      refuse(fmt::format("{} columns instead of {}", fields_.size(), columns));
    }
  }

  template <typename T>
  T number() {
    return take<T>(parse_number<T>, std::is_integral_v<T> ? "a whole number" : "a finite number");
  }
  double duration() { return take(parse_duration, "a duration H:MM:SS.ffffff"); }
  std::string text() { return std::string(fields_[next_++]); }
  bool more() const { return next_ < fields_.size(); }
  NoiseKind noise() {
    const std::string name = text();
    for (const NoiseKind kind : {NoiseKind::kFloat, NoiseKind::kExact}) {
      if (name == noise_name(kind)) return kind;
    }
    refuse("noise must be float or exact");
  }
  bool flag(const char* what) {
    const std::string value = text();
    if (value != "0" && value != "1") refuse(fmt::format("{} must be 0 or 1", what));
    return value == "1";
  }

  [[noreturn]] void refuse(std::string_view what) const { throw Error("{}: {}", where_, what); }

 private:
  template <typename T>
  T take(std::optional<T> (*parse)(std::string_view), std::string_view expected) {
    const size_t column = next_++;
    const std::optional<T> value = parse(fields_[column]);
    if (!value) {
      // A damaged file can hold megabytes in one field.
      refuse(fmt::format("{} is {:?}, which is not {}", split(kHeader)[column],
                         fields_[column].substr(0, 40), expected));
    }
    return *value;
  }

  std::vector<std::string_view> fields_;
  std::string where_;
  size_t next_ = 0;
};

bool is_class(int64_t label) { return label >= 0 && label <= kMaxClass; }

/// What no row of ours can say; empty if there is nothing.
std::string_view contradiction(const CertificateRow& row, double printed_radius, int64_t correct) {
  const Certificate& c = row.certificate;
  const Counts& counts = c.counts;
  if (row.index < 0 || row.index > kMaxIndex) return "idx is out of range";
  if (!is_class(row.label)) return "label is out of range";
  if (!is_class(c.predict) && !row.abstained()) return "predict is out of range";
  if (!is_class(counts.selected) && counts.selected != kAbstain) return "selected is out of range";
  if (!row.abstained() && c.predict != counts.selected) return "predict is not the selected class";
  if (correct != row.correct()) return "correct does not follow from predict and label";
  if (row.n0 < 1 || row.n0 > kMaxVotes) return "n0 must be from 1 to 2^32";
  if (counts.n < 0 || counts.n > kMaxVotes) return "n must be from 0 to 2^32";
  if (counts.n == 0 && (row.abstained() || row.correct() || c.radius != 0)) {
    return "only a wrong class is left without votes";
  }
  if (counts.top < 0 || counts.top > counts.n) return "count_top must lie between 0 and n";
  if (counts.runner_up < 0 || counts.runner_up > counts.n - counts.top) {
    return "count_runner_up must lie between 0 and n - count_top";
  }
  if (!(c.p_lower >= 0 && c.p_lower <= 1)) return "p_lower must lie between 0 and 1";
  if (!(row.alpha > 0 && row.alpha < 1)) return "alpha must lie strictly between 0 and 1";
  if (!(row.sigma > 0 && row.sigma <= kMaxSigma)) return "sigma must be positive, at most 1e30";
  if (!(c.radius >= 0)) return "radius_exact must not be negative";
  if (row.abstained() && c.radius != 0) return "an abstention has no radius";
  if (!(printed_radius >= 0 && printed_radius <= c.radius)) {
    return "radius must lie between 0 and radius_exact";
  }
  return {};
}

[[noreturn]] void refuse_void(std::string_view line, const std::string& name) {
  throw Error("{}: is void: {}; certify again into another table", name,
              line.substr(kVoid.size(), 200));
}

CertificateRow parse_row(FieldReader fields) {
  CertificateRow row;
  Certificate& certificate = row.certificate;
  row.index = fields.number<int64_t>();
  row.label = fields.number<int64_t>();
  certificate.predict = fields.number<int64_t>();
  const auto printed_radius = fields.number<double>();
  const auto correct = fields.number<int64_t>();
  row.seconds = fields.duration();
  certificate.counts.selected = fields.number<int64_t>();
  row.n0 = fields.number<int64_t>();
  certificate.counts.n = fields.number<int64_t>();
  certificate.counts.top = fields.number<int64_t>();
  certificate.counts.runner_up = fields.number<int64_t>();
  certificate.p_lower = fields.number<double>();
  row.alpha = fields.number<double>();
  row.sigma = fields.number<double>();
  certificate.radius = fields.number<double>();
  row.seed = fields.number<uint64_t>();
  row.base = fields.text();
  if (fields.more()) {
    row.noise = fields.noise();
    row.shared = fields.flag("shared");
  } else {
    take_noise_from_base(row);
  }
  const std::string_view wrong = contradiction(row, printed_radius, correct);
  if (!wrong.empty()) fields.refuse(wrong);
  return row;
}

}  // namespace

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

std::string certificate_header() { return std::string(kHeader); }

std::string format_row(const CertificateRow& row) {
  check(row.base.find_first_of("\t\n") == std::string::npos,
        "format_row: a tab or line end in the base classifier's description: {}", row.base);
  const Certificate& c = row.certificate;
  const Counts& counts = c.counts;
  return fmt::format(
      "{}\t{}\t{}\t{}\t{:d}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:d}\n", row.index,
      row.label, c.predict, format_radius(c.radius), row.correct(), format_duration(row.seconds),
      counts.selected, row.n0, counts.n, counts.top, counts.runner_up, c.p_lower, row.alpha,
      row.sigma, c.radius, row.seed, row.base, noise_name(row.noise), row.shared);
}

std::string format_void(std::string_view reason) { return fmt::format("{}{}\n", kVoid, reason); }

bool is_void(std::string_view line) { return line.starts_with(kVoid); }

const char* noise_name(NoiseKind noise) { return noise == NoiseKind::kExact ? "exact" : "float"; }

const char* radius_name(RadiusKind radius) {
  return radius == RadiusKind::kMulticlass ? "multiclass" : "one-sided";
}

void take_noise_from_base(CertificateRow& row) {
  const auto take = [&](std::string_view suffix) {
    const bool found = row.base.ends_with(suffix);
    if (found) row.base.resize(row.base.size() - suffix.size());
    return found;
  };
  if (take(kSharedSuffix)) row.shared = true;
  if (take(kExactSuffix)) row.noise = NoiseKind::kExact;
}

std::string_view unsupported(const CertificateRow& row, RadiusKind radius) {
  const Certificate& claimed = row.certificate;
  const Certificate c = certificate_from_counts(claimed.counts, row.sigma, row.alpha, radius);
  if (claimed.counts.n == 0) return {};  // nothing is claimed
  if (!row.abstained() && c.predict == kAbstain) return "its counts support no answer";
  if (claimed.p_lower > c.p_lower + kTolerance) return "p_lower is above what its counts support";
  if (claimed.radius > c.radius + kTolerance)
    return "radius_exact is above what its counts support";
  return {};
}

std::vector<CertificateRow> parse_certificates(std::string_view text, const std::string& name) {
  const std::string old = old_header();
  if (kHeader.starts_with(text) || old == text) return {};
  const bool is_old = text.starts_with(old);
  if (!is_old && !text.starts_with(kHeader)) {
    throw Error("{}:1: not the header of a certificates.tsv; fedsmooth certify writes one", name);
  }
  std::vector<CertificateRow> rows;
  std::unordered_set<int64_t> seen;
  text.remove_prefix(is_old ? old.size() : kHeader.size());
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::string where = fmt::format("{}:{}", name, rows.size() + 2);
    const std::string_view line = text.substr(0, end);
    if (is_void(line)) refuse_void(line, name);
    rows.push_back(parse_row(FieldReader(line, where, is_old ? kOldColumns : kColumns)));
    if (!seen.insert(rows.back().index).second) {
      throw Error("{}: idx {} occurs twice", where, rows.back().index);
    }
  }
  if (is_void(text)) refuse_void(text, name);  // cut off, but said
  return rows;
}

}  // namespace fedsmooth
