#include "fedsmooth/report/panels.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/gnuplot.h"
#include "fedsmooth/report/text.h"

namespace fedsmooth {
namespace {

constexpr double kPanelWidth = 296, kPanelHeight = 250, kGap = 24;
constexpr double kLeft = 72, kRight = 20, kTop = 40, kBottom = 72;
constexpr double kSample = 76;  // of a line in the legend, with the gap behind its label
constexpr double kHeadroom = 1.05;
constexpr double kMostTics = 6;

std::vector<Curve> all_curves(const std::vector<Panel>& panels) {
  std::vector<Curve> curves;
  for (const Panel& panel : panels) {
    for (const Curve& curve : panel.curves) {
      if (!curve.points.empty()) curves.push_back(curve);
    }
  }
  return curves;
}

/// In the order in which the labels appear; a label's place is its look.
std::vector<std::string> labels_of(const std::vector<Curve>& curves) {
  std::vector<std::string> labels;
  for (const Curve& curve : curves) {
    if (std::find(labels.begin(), labels.end(), curve.label) == labels.end()) {
      labels.push_back(curve.label);
    }
  }
  return labels;
}

struct Legend {
  std::vector<std::string> entries;  // of gnuplot's plot command
  size_t columns = 1;
  double height = 0;
};

Legend make_legend(const std::vector<Curve>& curves, double width) {
  const size_t room = static_cast<size_t>((width - kSample) / kCharacter);
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
  const double entry = kSample + kCharacter * static_cast<double>(longest);
  legend.columns = std::max<size_t>(1, static_cast<size_t>(width / entry));
  const size_t lines = (legend.entries.size() + legend.columns - 1) / legend.columns;
  legend.height = kLine * (static_cast<double>(lines) + 0.5);
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
    if (plots.plots.empty()) plots.plots.push_back("NaN notitle");  // the axes alone
    all.push_back(std::move(plots));
  }
  return all;
}

std::string place_panel(const std::string& title, size_t index, double width) {
  const double left = kLeft + static_cast<double>(index) * (kPanelWidth + kGap);
  const auto longest = static_cast<size_t>((kPanelWidth + kGap) / kCharacter);
  return fmt::format("set lmargin at screen {}\nset rmargin at screen {}\nset title {}\n",
                     left / width, (left + kPanelWidth) / width,
                     quote_for_gnuplot(shorten(title, longest)));
}

}  // namespace

bool has_curves(const std::vector<Panel>& panels) { return !all_curves(panels).empty(); }

Figure panel_figure(const std::vector<Panel>& panels) {
  if (!has_curves(panels)) throw Error("figure: no certificates to draw");
  const std::vector<Curve> curves = all_curves(panels);
  const Axes axes = Axes::around(curves, kHeadroom);
  const std::vector<CurvePlots> plots = plot_panels(panels, axes, labels_of(curves));
  const double width =
      kLeft + static_cast<double>(panels.size()) * (kPanelWidth + kGap) - kGap + kRight;
  const Legend legend = make_legend(curves, width);
  const double height = kTop + kPanelHeight + kBottom + legend.height;
  std::string script(axes_style());
  for (const CurvePlots& panel : plots) script += panel.data;
  script += fmt::format(
      "set multiplot\n"
      "set tmargin at screen {}\nset bmargin at screen {}\n"
      "set key at screen 0.5,{} center top horizontal maxcols {} Left reverse samplen 3\n"
      "set xrange [0:{}]\nset xtics {}\nset yrange [0:{}]\n"
      "set xlabel 'ℓ₂ radius' offset 0,0.3\nset ylabel 'certified accuracy (%)'\n",
      1 - kTop / height, 1 - (kTop + kPanelHeight) / height, legend.height / height, legend.columns,
      axes.x_max, tic_step(axes.x_max, kMostTics), 100 * axes.y_max);
  for (size_t i = 0; i < panels.size(); ++i) {
    if (i == 1) script += "unset ylabel\nset format y ''\n";
    script += fmt::format("{}plot {}", place_panel(panels[i].title, i, width),
                          fmt::join(plots[i].plots, ", "));
    if (i + 1 == panels.size()) script += fmt::format(", {}", fmt::join(legend.entries, ", "));
    script += "\n";
  }
  return {script + "unset multiplot\n", height, width};
}

}  // namespace fedsmooth
