// The fields of one line between tabs, taken in the order of the columns. What is not as expected
// is an Error that names the line and the column.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fedsmooth {

/// The number that is the whole of `text`; none that is infinite or NaN.
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

/// Seconds of H:MM:SS.ffffff.
std::optional<double> parse_duration(std::string_view text);

std::vector<std::string_view> split_tabs(std::string_view line);

class FieldReader {
 public:
  /// `columns` are the names, which must outlive the reader; a line of more or fewer fields is an
  /// Error. `where` is "file:line".
  FieldReader(std::string_view line, std::string where,
              const std::vector<std::string_view>& columns);

  template <typename T>
  T number() {
    return take<T>(parse_number<T>, std::is_integral_v<T> ? "a whole number" : "a finite number");
  }
  double duration() { return take(parse_duration, "a duration H:MM:SS.ffffff"); }
  std::string text() { return std::string(fields_[next_++]); }
  bool more() const { return next_ < fields_.size(); }

  [[noreturn]] void refuse(std::string_view what) const;

  /// The next field as `parse` reads it; an Error that calls it not `expected` if it does not.
  template <typename T>
  T take(std::optional<T> (*parse)(std::string_view), std::string_view expected) {
    const size_t column = next_++;
    const std::optional<T> value = parse(fields_[column]);
    if (!value) refuse_field(column, expected);
    return *value;
  }

 private:
  [[noreturn]] void refuse_field(size_t column, std::string_view expected) const;

  std::vector<std::string_view> fields_;
  const std::vector<std::string_view>* columns_;
  std::string where_;
  size_t next_ = 0;
};

}  // namespace fedsmooth
