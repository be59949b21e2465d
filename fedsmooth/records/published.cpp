#include "fedsmooth/records/published.h"

#include <algorithm>
#include <unordered_set>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/records/field_reader.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n";

// Python's str(timedelta) leaves out a fraction of zero.
std::optional<double> parse_elapsed(std::string_view text) {
  if (text.find('.') != std::string_view::npos) return parse_duration(text);
  return parse_duration(std::string(text.substr(0, 20)) + ".000000");
}

CertificateRow parse_row(FieldReader fields) {
  CertificateRow row;
  row.published = true;
  row.noise = &kFloatNoise;  // the noise of Cohen et al., whose format this is
  row.index = fields.number<int64_t>();
  row.label = fields.number<int64_t>();
  row.certificate.predict = fields.number<int64_t>();
  row.certificate.radius = fields.number<double>();
  const auto correct = fields.number<int64_t>();
  row.seconds = fields.take(parse_elapsed, "a duration H:MM:SS or H:MM:SS.ffffff");
  row.certificate.counts.selected = row.certificate.predict;
  if (row.certificate.radius < 0) fields.refuse("radius must not be negative");
  const std::string_view wrong = contradiction_in_answer(row, correct);
  if (!wrong.empty()) fields.refuse(wrong);
  return row;
}

}  // namespace

bool is_published(std::string_view text) { return text.starts_with(kHeader); }

std::vector<CertificateRow> parse_published(std::string_view text, const std::string& name) {
  check(is_published(text), "parse_published: {} has another header", name);
  check_row_count(text, name);
  const std::vector<std::string_view> columns = split_tabs(kHeader.substr(0, kHeader.size() - 1));
  std::vector<CertificateRow> rows;
  std::unordered_set<int64_t> seen;
  text.remove_prefix(kHeader.size());
  while (!text.empty()) {
    const std::string where = fmt::format("{}:{}", name, rows.size() + 2);
    const size_t end = std::min(text.find('\n'), text.size());
    rows.push_back(parse_row(FieldReader(text.substr(0, end), where, columns)));
    if (!seen.insert(rows.back().index).second) {
      throw Error("{}: idx {} occurs twice", where, rows.back().index);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

}  // namespace fedsmooth
