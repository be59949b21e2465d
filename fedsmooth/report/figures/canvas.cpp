#include "fedsmooth/report/figures/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/report/figures/gnuplot.h"

namespace fedsmooth {
namespace {

// Okabe and Ito's colours without yellow, which is too faint on white, and four more.
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
                                 "#000000", "#8C564B", "#999933", "#7F7F7F", "#6A51A3"};
// Five against eleven: 55 curves before a look repeats.
constexpr std::array kDashes = {"solid", "(18,7)", "(6,6)", "(18,6,5,6)", "(2,5)"};

struct Canvas {
  std::string terminal;  // gnuplot's, with its options
  double unit;           // how much of the terminal's length one unit of the figure is
};

Canvas svg_canvas() {
  return {fmt::format("svg noenhanced font 'sans-serif,{}' background 'white'", kFont), 1};
}

/// `unit` in pixels for PNG, in inches for PDF.
Canvas cairo_canvas(std::string_view format, double unit, double scale) {
  const double points_per_pixel = 0.75;  // cairo's fonts are in points, its canvas in pixels
  return {fmt::format("{}cairo noenhanced font 'Sans,{}' fontscale {} linewidth {} dashlength 2",
                      format, kFont, points_per_pixel * scale, scale),
          unit};
}

Canvas canvas_for(const std::filesystem::path& out) {
  const std::string ending = out.extension().string();
  if (ending == ".svg") return svg_canvas();
  if (ending == ".pdf") return cairo_canvas("pdf", 1.0 / 120, 0.6);  // 6 inches, 9.6 point font
  if (ending == ".png") return cairo_canvas("png", 2.5, 2.5);        // 300 dpi at 6 inches
  throw Error("{}: unknown kind of figure; use .svg, .pdf or .png", out.string());
}

std::string draw(const Figure& figure, const Canvas& canvas) {
  return run_gnuplot(fmt::format("set encoding utf8\nset terminal {} size {},{}\n{}",
                                 canvas.terminal, canvas.unit * figure.width,
                                 canvas.unit * figure.height, figure.script));
}

}  // namespace

std::string curve_look(size_t index) {
  return fmt::format("linecolor rgb '{}' dashtype {}", curve_colour(index),
                     kDashes[index % kDashes.size()]);
}

std::string curve_colour(size_t index) { return kColours[index % kColours.size()]; }

std::string curve_dashes(size_t index) {
  std::string dashes = kDashes[index % kDashes.size()];
  if (dashes == "solid") return {};
  std::ranges::replace(dashes, ',', ' ');
  return dashes.substr(1, dashes.size() - 2);
}

std::string_view axes_style() {
  return "set border 3 linecolor rgb '#777777'\n"
         "set tics nomirror out scale 0.6 textcolor rgb '#222222'\n"
         "set grid linetype 1 linecolor rgb '#dddddd' linewidth 0.8\n"
         "set format '%g'\n";
}

double tic_step(double span, double most) {
  double step = std::pow(10, std::floor(std::log10(span / most)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (span / step > most) step *= factor;
  }
  return step;
}

ValueAxis value_axis(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double size = std::max(std::abs(*low), std::abs(*high));
  const bool flat = *high - *low <= 1e-6 * size;  // less than the axis can show
  const double span = !flat ? *high - *low : size > 0 ? size : 1;
  const double step = tic_step(span, 4);
  const double bottom = step * std::floor(*low / step);
  const double top = step * std::ceil(*high / step);
  return {bottom, top > bottom ? top : bottom + step, step};
}

void write_figure(const Figure& figure, const std::filesystem::path& out) {
  write_file(out, draw(figure, canvas_for(out)));
}

}  // namespace fedsmooth
