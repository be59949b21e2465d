#include "fedsmooth/records/field_reader.h"

#include "fedsmooth/base/error.h"

namespace fedsmooth {

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

std::vector<std::string_view> split_tabs(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

FieldReader::FieldReader(std::string_view line, std::string where,
                         const std::vector<std::string_view>& columns)
    : fields_(split_tabs(line)), columns_(&columns), where_(std::move(where)) {
  if (fields_.size() != columns.size()) {
    refuse(fmt::format("{} columns instead of {}", fields_.size(), columns.size()));
  }
}

void FieldReader::refuse(std::string_view what) const { throw Error("{}: {}", where_, what); }

void FieldReader::refuse_field(size_t column, std::string_view expected) const {
  // A damaged file can hold megabytes in one field.
  refuse(fmt::format("{} is {:?}, which is not {}", (*columns_)[column],
                     fields_[column].substr(0, 40), expected));
}

}  // namespace fedsmooth
