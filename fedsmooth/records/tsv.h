// Tables of numbers between tabs, under a fixed header. Strict but for a last line without its end,
// which a kill cut off and which is left out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

/// Cells of one line; an empty cell is not a number. `where` is "file:line" for messages.
struct TsvRow {
  std::vector<std::optional<double>> cells;
  std::string where;

  /// The number in a column, or an Error if it is empty or outside [low, high].
  double number(size_t column, double low, double high) const;
  /// The same for a whole number.
  int64_t whole(size_t column, int64_t low, int64_t high) const;
};

/// Calls `on_row` for every line below `header` (which has its line end). A cell that is neither
/// empty nor a finite number, and a line with another number of cells, are Errors.
void parse_tsv(std::string_view text, std::string_view header, const std::string& name,
               const std::function<void(const TsvRow&)>& on_row);

}  // namespace fedsmooth
