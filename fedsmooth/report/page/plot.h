// A pair of axes with series on them, as an SVG: one geometry for every width of screen. Letters
// keep their size in pixels by the style sheet, which knows how wide the SVG is shown.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fedsmooth {

struct Tic {
  double at;
  std::string name;
};

struct Axis {
  std::string label;
  double from = 0, to = 1;
  std::vector<Tic> tics;
  int digits = 3;  // after the point, where a value is read off
};

/// Returns at most `most` round tics from `from` to `to`.
std::vector<Tic> round_tics(double from, double to, double most);

struct Series {
  /// What y is between two x: the value at the next x (kUntil), at the last x (kFrom), that of the
  /// nearest one (kLine), or that of the bin which begins at x (kBins: an outline; kBars: filled).
  enum class Kind { kUntil, kFrom, kLine, kBins, kBars };

  Kind kind = Kind::kLine;
  size_t entry = 0;          // of the chart's legend, which gives name and look
  std::string suffix = {};   // what the series is beside others of its entry, such as "attacked"
  std::vector<double> x, y;  // what is read off, y as it is printed elsewhere on the page
  std::vector<std::string> names = {};               // of the bins; else x is named by its value
  std::vector<std::pair<double, double>> path = {};  // corners in units of the axes
  double width = 0;                                  // of bins, in units of x

  bool thin() const { return !suffix.empty(); }
};

struct Plot {
  std::string title;  // may be empty
  Axis x, y;
  std::vector<Series> series;
  double width = 600, height = 330;  // in units of the SVG
  bool names_x = true;               // whether the axis of x has numbers and a label
};

/// How a legend's entry looks.
struct Entry {
  std::string label;
  std::string colour;       // CSS
  std::string dashes = {};  // stroke-dasharray; empty: solid
};

/// Returns the plot as an SVG. A screen reader reads `described`. The names of y's tics get room
/// for `labels` characters.
std::string render_plot(const Plot& plot, const std::vector<Entry>& legend,
                        std::string_view described, size_t labels);

/// Returns the length of the axis's longest tic name, in characters.
size_t longest_tic(const Axis& axis);

/// Returns what the page's script needs: the place of the axes and the values of the series.
nlohmann::json plot_data(const Plot& plot, size_t labels);

}  // namespace fedsmooth
