// Reads the fields of one line, separated by tabs, in the order of the columns. A field that is not
// as expected is an Error that names the line and the column.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fedsmooth {

/// Returns the number that `text` as a whole denotes; none if it is no number, infinite or NaN.
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

/// Returns the seconds that H:MM:SS.ffffff denotes; none if `text` has another form.
std::optional<double> parse_duration(std::string_view text);

/// Returns the fields between tabs, as views of `line`.
std::vector<std::string_view> split_tabs(std::string_view line);

class FieldReader {
 public:
  /// `line` and `columns`, the names of its fields, must outlive the reader. `where` is
  /// "file:line". Throws an Error if the line has more or fewer fields.
  FieldReader(std::string_view line, std::string where,
              const std::vector<std::string_view>& columns);

  /// number(), duration() and text() return the next field. They must be called at most once for
  /// each column.
  template <typename T>
  T number() {
    return take<T>(parse_number<T>, std::is_integral_v<T> ? "a whole number" : "a finite number");
  }
  double duration() { return take(parse_duration, "a duration H:MM:SS.ffffff"); }
  std::string text() { return std::string(fields_[next_++]); }
  bool more() const { return next_ < fields_.size(); }

  /// Throws an Error that says `what` of the line.
  [[noreturn]] void refuse(std::string_view what) const;

  /// Returns the next field as `parse` reads it. Throws an Error that the field is not `expected`
  /// if `parse` returns none.
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
