// Tables of numbers, separated by tabs, under a fixed header. Parsing is strict, except that a last
// line without its end is left out: a kill cut it off.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

/// The cells of one line.
struct TsvRow {
  std::vector<std::optional<double>> cells;  // none: the cell is empty
  std::string where;                         // "file:line", for messages

  /// Returns the number in a column, counted from 0. Throws an Error if the cell is empty or
  /// outside [low, high].
  double number(size_t column, double low, double high) const;
  /// Returns the whole number in a column, counted from 0. Throws an Error if the cell is empty,
  /// outside [low, high] or not whole.
  int64_t whole(size_t column, int64_t low, int64_t high) const;
};

/// Calls `on_row` for every line below `header`, which includes its line end; `name` is the file's,
/// for messages. Throws an Error if the header differs, a cell is neither empty nor a finite
/// number, or a line has another number of cells.
void parse_tsv(std::string_view text, std::string_view header, const std::string& name,
               const std::function<void(const TsvRow&)>& on_row);

}  // namespace fedsmooth
