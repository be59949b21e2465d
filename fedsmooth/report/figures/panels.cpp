#include "fedsmooth/report/figures/panels.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/gnuplot.h"

namespace fedsmooth {
namespace {

constexpr double kPanelWidth = 296, kPanelHeight = 250, kGap = 24;
constexpr double kLeft = 72, kRight = 20, kTop = 36, kBottom = 78;
// gnuplot's own reckoning in the SVG. A column more than it has room for would cost it a line.
constexpr double kWideCharacter = 0.7 * kFont, kSample = 7 * kWideCharacter;
constexpr double kLegendLine = 1.5 * kFont;
constexpr double kHeadroom = 1.05;
constexpr double kMostTics = 6;

struct Legend {
  std::vector<std::string> entries;  // of gnuplot's plot command
  size_t columns = 1;
  double height = 0;
};

Legend make_legend(const std::vector<Curve>& curves, double width) {
  const size_t room = static_cast<size_t>((width - kSample) / kWideCharacter);
  Legend legend;
  size_t longest = 0;
  const std::vector<std::string> labels = labels_of(curves);
  for (size_t look = 0; look < labels.size(); ++look) {
    const std::string label = shorten(labels[look], std::min(room, kLongestLabel));
    longest = std::max(longest, label.size());
    legend.entries.push_back(fmt::format("keyentry with lines linewidth 2 {} title {}",
                                         curve_look(look), quote_for_gnuplot(label)));
  }
  if (std::any_of(curves.begin(), curves.end(),
                  [](const Curve& c) { return !c.attacked.empty(); })) {
    legend.entries.push_back(attacked_entry());
    longest = std::max(longest, kAttackedTitle.size());
  }
  const double entry = kSample + kWideCharacter * static_cast<double>(longest);
  legend.columns = std::max<size_t>(1, static_cast<size_t>(width / entry));
  const size_t lines = (legend.entries.size() + legend.columns - 1) / legend.columns;
  legend.height = kLegendLine * (static_cast<double>(lines) + 0.5);
  return legend;
}

/// gnuplot wants the data before the first plot.
std::vector<CurvePlots> plot_panels(const std::vector<Panel>& panels, const Axes& axes,
                                    const std::vector<std::string>& labels) {
  std::vector<CurvePlots> all;
  for (const Panel& panel : panels) {
    CurvePlots plots;
    for (const Curve& curve : panel.curves) {
      if (curve.points.empty()) continue;
      const auto look = std::find(labels.begin(), labels.end(), curve.label) - labels.begin();
      add_curve(curve, axes, fmt::format("{}_{}", all.size(), look), look, "notitle", plots);
    }
    all.push_back(std::move(plots));
  }
  return all;
}

/// Margins from left to right; gnuplot measures them as shares of the canvas.
std::string place(double left, double right, double width) {
  return fmt::format("set lmargin at screen {}\nset rmargin at screen {}\n", left / width,
                     right / width);
}

std::string draw_panel(const std::string& title, const std::vector<std::string>& plots) {
  const auto longest = static_cast<size_t>(kPanelWidth / kCharacter);
  return fmt::format("set label 1 {} at graph 0.5, graph 1 offset 0,0.9 center\n{}plot {}\n",
                     quote_for_gnuplot(shorten(title, longest)),
                     plots.empty()
                         ? "set label 2 'not certified yet' at graph 0.5, graph 0.5 center\n"
                         : "unset label 2\n",
                     plots.empty() ? "NaN notitle" : fmt::format("{}", fmt::join(plots, ", ")));
}

/// A plot of nothing, as gnuplot lets no legend be wider than its plot.
std::string draw_legend(const Legend& legend, const Figure& figure) {
  return fmt::format(
      "{}unset border\nunset tics\nunset xlabel\nunset ylabel\nunset label\n"
      "set key at screen 0.5,{} center top horizontal maxcols {} Left reverse samplen 3\n"
      "plot NaN notitle, {}\n",
      place(0, figure.width, figure.width), legend.height / figure.height, legend.columns,
      fmt::join(legend.entries, ", "));
}

std::string set_axes(const Axes& axes, double height) {
  return fmt::format(
      "set tmargin at screen {}\nset bmargin at screen {}\n"
      "{}set yrange [0:{}]\nset ylabel 'certified accuracy (%)'\n",
      1 - kTop / height, 1 - (kTop + kPanelHeight) / height, radius_axis(axes, kMostTics),
      100 * axes.y_max);
}

}  // namespace

std::vector<Curve> all_curves(const std::vector<Panel>& panels) {
  std::vector<Curve> curves;
  for (const Panel& panel : panels) {
    for (const Curve& curve : panel.curves) {
      if (!curve.points.empty()) curves.push_back(curve);
    }
  }
  return curves;
}

std::vector<std::string> labels_of(const std::vector<Curve>& curves) {
  std::vector<std::string> labels;
  for (const Curve& curve : curves) {
    if (std::find(labels.begin(), labels.end(), curve.label) == labels.end()) {
      labels.push_back(curve.label);
    }
  }
  return labels;
}

bool has_curves(const std::vector<Panel>& panels) { return !all_curves(panels).empty(); }

Figure panel_figure(const std::vector<Panel>& panels) {
  const std::vector<Curve> curves = all_curves(panels);
  if (curves.empty()) throw Error("figure: no certificates to draw");
  const Axes axes = Axes::around(curves, kHeadroom);
  const std::vector<CurvePlots> plots = plot_panels(panels, axes, labels_of(curves));
  const double width =
      kLeft + static_cast<double>(panels.size()) * (kPanelWidth + kGap) - kGap + kRight;
  const Legend legend = make_legend(curves, width);
  Figure figure{std::string(axes_style()), kTop + kPanelHeight + kBottom + legend.height, width};
  for (const CurvePlots& panel : plots) figure.script += panel.data;
  figure.script += "set multiplot\n" + set_axes(axes, figure.height);
  double left = kLeft;
  for (size_t i = 0; i < panels.size(); ++i) {
    if (i == 1) figure.script += "unset ylabel\nset format y ''\n";
    figure.script += place(left, left + kPanelWidth, width);
    figure.script += draw_panel(panels[i].title, plots[i].plots);
    left += kPanelWidth + kGap;
  }
  figure.script += draw_legend(legend, figure) + "unset multiplot\n";
  return figure;
}

}  // namespace fedsmooth
