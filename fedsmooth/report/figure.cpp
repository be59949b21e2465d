#include "fedsmooth/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/report/gnuplot.h"
#include "fedsmooth/report/text.h"

namespace fedsmooth {
namespace {

// Okabe and Ito's colours without yellow, which is too faint on white.
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                 "#E69F00", "#56B4E9", "#000000"};
// Five against seven: 35 curves before a look repeats, and neighbours differ without colour too.
constexpr std::array kDashes = {"solid", "(18,7)", "(6,6)", "(18,6,5,6)", "(2,5)"};

// All formats are drawn on this canvas (in units of the SVG) and scaled.
constexpr double kWidth = 720;
constexpr double kHeight = 460;
constexpr double kFont = 16;
constexpr double kCharacter = 0.56 * kFont;  // mean width
constexpr double kLine = 1.4 * kFont;
constexpr size_t kLongestLabel = 56;  // gnuplot leaves out a legend wider than the canvas

constexpr double kStepsDrawn = 1000;  // more cannot be seen and would bloat the SVG

struct Axes {
  double x_max;
  double y_max;  // share
};

Axes choose_axes(const std::vector<Curve>& curves) {
  double radius = 0, accuracy = 0;
  for (const Curve& curve : curves) {
    if (curve.points.empty()) throw Error("figure: no certificates in \"{}\"", curve.label);
    radius = std::max(radius, curve.points.back().radius);
    accuracy = std::max(accuracy, curve.points.front().accuracy);
  }
  const double room_for_legend = 1.2 * accuracy;
  return {radius > 0 ? 1.03 * radius : 1.0,
          std::clamp(std::ceil(10 * room_for_legend) / 10, 0.1, 1.0)};
}

double accuracy_beyond(const Curve& curve, double radius) {
  for (const CurvePoint& point : curve.points) {
    if (point.radius >= radius) return point.accuracy;
  }
  return 0;
}

/// Whether the top right corner is free. Curves only fall, so the box's left edge decides.
bool legend_fits_inside(const std::vector<Curve>& curves, const Axes& axes) {
  constexpr double kPlotWidth = kWidth - 90, kPlotHeight = kHeight - 90, kSample = 90;
  size_t longest = 0;
  for (const Curve& curve : curves) {
    longest = std::max(longest, std::min(curve.label.size(), kLongestLabel));
  }
  const double box_width = (kSample + kCharacter * static_cast<double>(longest)) / kPlotWidth;
  const double box_height = kLine * static_cast<double>(curves.size() + 1) / kPlotHeight;
  return std::all_of(curves.begin(), curves.end(), [&](const Curve& curve) {
    const double left = std::max(0.0, 1 - box_width) * axes.x_max;
    return accuracy_beyond(curve, left) < (1 - box_height) * axes.y_max;
  });
}

/// The last point of each of kStepsDrawn intervals. As a step holds its right end's accuracy, what
/// is left out can only make the curve lower.
std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& points, double x_max) {
  const auto interval = [x_max](const CurvePoint& point) {
    return std::floor(point.radius / x_max * kStepsDrawn);
  };
  std::vector<CurvePoint> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool end = i == 0 || i + 1 == points.size();
    if (end || interval(points[i]) != interval(points[i + 1])) kept.push_back(points[i]);
  }
  return kept;
}

/// The corners of the staircase, down to the axis. gnuplot's own steps would begin the dashes anew
/// at each corner.
std::string format_staircase(const std::vector<CurvePoint>& points) {
  const auto corner = [](double radius, double accuracy) {
    return fmt::format("{:.8g} {:.8g}\n", radius, 100 * accuracy);
  };
  std::string corners = corner(points[0].radius, points[0].accuracy);
  for (size_t i = 1; i < points.size(); ++i) {
    corners += corner(points[i - 1].radius, points[i].accuracy);
    corners += corner(points[i].radius, points[i].accuracy);
  }
  return corners + corner(points.back().radius, 0);
}

struct Canvas {
  std::string terminal;  // gnuplot's, with its options
  double unit;           // how much of the terminal's length one unit of the canvas is
};

std::string make_script(const std::vector<Curve>& curves, const Canvas& canvas) {
  if (curves.empty()) throw Error("figure: no runs to draw");
  const Axes axes = choose_axes(curves);
  const bool inside = legend_fits_inside(curves, axes);
  const double legend = inside ? 0 : kLine * static_cast<double>(curves.size() + 1);
  std::string script = fmt::format(
      "set encoding utf8\n"
      "set terminal {} size {},{}\n"
      "set border 3 linecolor rgb '#777777'\n"
      "set tics nomirror out scale 0.6 textcolor rgb '#222222'\n"
      "set grid linetype 1 linecolor rgb '#dddddd' linewidth 0.8\n"
      "set format '%g'\n"
      "set key {} Left reverse samplen 3 spacing 1.15\n"
      "set xlabel 'ℓ₂ radius' offset 0,0.3\n"
      "set ylabel 'certified accuracy (%)'\n"
      "set xrange [0:{}]\n"
      "set yrange [0:{}]\n",
      canvas.terminal, canvas.unit * kWidth, canvas.unit * (kHeight + legend),
      inside ? "top right" : "below center vertical maxcols 1", axes.x_max, 100 * axes.y_max);
  std::string plots;
  for (size_t i = 0; i < curves.size(); ++i) {
    script += fmt::format("$curve{} << END\n{}END\n", i,
                          format_staircase(thin_out(curves[i].points, axes.x_max)));
    plots += fmt::format(
        "{} $curve{} with lines linewidth 2 linecolor rgb '{}' dashtype {} title {}",
        i == 0 ? "plot" : ",", i, kColours[i % kColours.size()], kDashes[i % kDashes.size()],
        quote_for_gnuplot(shorten(curves[i].label, kLongestLabel)));
  }
  return script + plots + "\n";
}

Canvas svg_canvas(std::string_view options) {
  return {fmt::format("svg noenhanced font 'sans-serif,{}' {}", kFont, options), 1};
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
  if (ending == ".svg") return svg_canvas("background 'white'");
  if (ending == ".pdf") return cairo_canvas("pdf", 1.0 / 120, 0.6);  // 6 inches, 9.6 point font
  if (ending == ".png") return cairo_canvas("png", 2.5, 2.5);        // 300 dpi at 6 inches
  throw Error("{}: unknown kind of figure; use .svg, .pdf or .png", out.string());
}

/// Replaces every span from `first` to the next `last`, both included.
void replace_spans(std::string& text, std::string_view first, std::string_view last,
                   std::string_view with) {
  size_t begin = 0;
  while ((begin = text.find(first, begin)) != std::string::npos) {
    const size_t end = text.find(last, begin + first.size());
    if (end == std::string::npos) return;
    text.replace(begin, end + last.size() - begin, with);
    begin += with.size();
  }
}

}  // namespace

void draw_certified_accuracy(const std::vector<Curve>& curves, const std::filesystem::path& out) {
  write_file(out, run_gnuplot(make_script(curves, canvas_for(out))));
}

std::string certified_accuracy_svg(const std::vector<Curve>& curves) {
  std::string svg = run_gnuplot(make_script(curves, svg_canvas("dynamic")));
  svg.erase(0, svg.find("<svg"));
  // Labels cannot match any of these, as gnuplot escapes their "<".
  replace_spans(svg, "<defs>", "</defs>", "");  // point symbols, of which we use none
  replace_spans(svg, "<desc>", "</desc>", "");
  replace_spans(svg, "<title>", "</title>", "");  // browsers would show gnuplot's names as tips
  replace_spans(svg, "<g id=\"gnuplot_", "\"", "<g");
  return svg;
}

}  // namespace fedsmooth
