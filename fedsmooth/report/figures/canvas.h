// A figure is a gnuplot script and its size. The canvas makes a file of it, and holds the looks
// that all figures, and the charts of pages, share.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

// Lengths are in units of the SVG; the other formats are scaled.
constexpr double kFigureWidth = 720;
constexpr double kFont = 16;
constexpr double kCharacter = 0.56 * kFont;  // mean width
constexpr double kLine = 1.4 * kFont;
constexpr size_t kLongestLabel = 56;  // gnuplot leaves out a legend wider than the canvas

struct Figure {
  std::string script;  // without terminal and size
  double height = 460;
  double width = kFigureWidth;
};

/// Colours and dashes of curve number `index`, as gnuplot's options. 55 curves differ; neighbours
/// differ without colour too.
std::string curve_look(size_t index);
/// The colour alone.
std::string curve_colour(size_t index);
/// The dashes alone, as an SVG's stroke-dasharray; empty for a solid line.
std::string curve_dashes(size_t index);

/// Border, tics and grid.
std::string_view axes_style();

/// The smallest of 1, 2 and 5 times a power of ten that goes at most `most` times into `span`:
/// gnuplot does not keep to the room that its tics have.
double tic_step(double span, double most);

/// An axis that includes all values and has at most six tics, `step` apart.
struct ValueAxis {
  double bottom, top, step;
};
ValueAxis value_axis(const std::vector<double>& values);

/// The format follows from the ending: .svg, .pdf or .png; any other is refused.
void write_figure(const Figure& figure, const std::filesystem::path& out);

}  // namespace fedsmooth
