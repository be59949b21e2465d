#include "fedsmooth/records/tsv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

std::optional<double> parse_cell(std::string_view text, const std::string& where) {
  if (text.empty()) return std::nullopt;
  double value = 0.0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw Error("{}: {:?} is not a number", where, text.substr(0, 40));
  }
  return value;
}

TsvRow parse_line(std::string_view line, std::string where, size_t columns) {
  TsvRow row{{}, std::move(where)};
  while (true) {
    const size_t tab = line.find('\t');
    row.cells.push_back(parse_cell(line.substr(0, tab), row.where));
    if (tab == std::string_view::npos) break;
    line.remove_prefix(tab + 1);
  }
  if (row.cells.size() != columns) {
    throw Error("{}: {} columns, expected {}", row.where, row.cells.size(), columns);
  }
  return row;
}

}  // namespace

double TsvRow::number(size_t column, double low, double high) const {
  const std::optional<double> value = cells.at(column);
  if (!value) throw Error("{}: column {} is empty", where, column + 1);
  if (!(*value >= low && *value <= high)) {
    throw Error("{}: {} in column {} is out of range", where, *value, column + 1);
  }
  return *value;
}

int64_t TsvRow::whole(size_t column, int64_t low, int64_t high) const {
  const double value = number(column, static_cast<double>(low), static_cast<double>(high));
  if (value != std::floor(value)) {
    throw Error("{}: {} in column {} is not a whole number", where, value, column + 1);
  }
  return static_cast<int64_t>(value);
}

void parse_tsv(std::string_view text, std::string_view header, const std::string& name,
               const std::function<void(const TsvRow&)>& on_row) {
  if (header.starts_with(text)) return;  // a kill cut the header off
  if (!text.starts_with(header)) throw Error("{}:1: not the expected header", name);
  const size_t columns = 1 + std::count(header.begin(), header.end(), '\t');
  size_t begin = header.size();
  for (int64_t line = 2;; ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return;
    on_row(parse_line(text.substr(begin, end - begin), fmt::format("{}:{}", name, line), columns));
    begin = end + 1;
  }
}

}  // namespace fedsmooth
