#include "fedsmooth/report/figures/difference_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/curves.h"
#include "fedsmooth/report/figures/gnuplot.h"

namespace fedsmooth {
namespace {

constexpr double kCurvesHeight = 270, kDifferenceHeight = 170, kGap = 26;
constexpr double kLeft = 92, kRight = 20, kTop = 20, kBottom = 74;  // room for -100
constexpr double kLegendHeight = 3.5 * kLine;                       // of two curves and the band
constexpr double kHeight =
    kTop + kCurvesHeight + kGap + kDifferenceHeight + kBottom + kLegendHeight;
constexpr double kMostTics = 10;
constexpr std::string_view kBand = "linecolor rgb '#bbbbbb'";

// Radius, difference, both ends of its interval.
std::string format_differences(const std::vector<PairedAtRadius>& curve) {
  std::string lines;
  for (const PairedAtRadius& at : curve) {
    const Difference& d = at.difference;
    lines += fmt::format("{:.8g} {:.6g} {:.6g} {:.6g}\n", at.radius, 100 * d.value, 100 * d.low,
                         100 * d.high);
  }
  return lines;
}

std::string place(double top, double height) {
  return fmt::format("set tmargin at screen {}\nset bmargin at screen {}\n", 1 - top / kHeight,
                     1 - (top + height) / kHeight);
}

std::string title_of(const char* which, const RunRecord& run) {
  const std::string label = fmt::format("{}: {}", which, shorten(run.name, kLongestLabel - 3));
  return "title " + quote_for_gnuplot(label);
}

}  // namespace

Figure difference_figure(const RunRecord& a, const RunRecord& b, const PairedComparison& compared) {
  const std::vector<Curve> curves = {curve_of(a, a.name), curve_of(b, b.name)};
  const Axes axes = Axes::around(curves, 1.05);
  CurvePlots plots;
  add_curve(curves[0], axes, "a", 0, "notitle", plots);
  add_curve(curves[1], axes, "b", 1, "notitle", plots);
  const auto entry = [](size_t look, const std::string& title) {
    return fmt::format("keyentry with lines linewidth 2 {} {}", curve_look(look), title);
  };
  return {
      fmt::format("{}{}$difference << END\n{}END\nset multiplot\n"
                  "set lmargin at screen {}\nset rmargin at screen {}\n"
                  "set key at screen 0.5,{} center top vertical maxcols 1 Left reverse samplen 3\n"
                  "{}{}"
                  "set ylabel 'certified accuracy (%)'\nset yrange [0:{}]\nplot {}\n"
                  "{}{}set ylabel 'A − B (points)'\nset yrange [*:*]\n"
                  "plot $difference using 1:3:4 with filledcurves {} notitle, "
                  "0 with lines linewidth 1 linecolor rgb '#777777' notitle, "
                  "$difference using 1:2 with lines linewidth 2 linecolor rgb '#000000' notitle, "
                  "{}, {}, keyentry with filledcurves {} title 'A − B, with 95% interval'\n"
                  "unset multiplot\n",
                  axes_style(), plots.data, format_differences(compared.curve),
                  kLeft / kFigureWidth, 1 - kRight / kFigureWidth, kLegendHeight / kHeight,
                  radius_axis(axes, kMostTics, false), place(kTop, kCurvesHeight), 100 * axes.y_max,
                  fmt::join(plots.plots, ", "), radius_axis(axes, kMostTics),
                  place(kTop + kCurvesHeight + kGap, kDifferenceHeight), kBand,
                  entry(0, title_of("A", a)), entry(1, title_of("B", b)), kBand),
      kHeight};
}

}  // namespace fedsmooth
