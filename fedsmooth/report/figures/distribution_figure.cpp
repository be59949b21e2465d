#include "fedsmooth/report/figures/distribution_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/gnuplot.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr double kPanelHeight = 190, kGap = 104;
constexpr double kLeft = 72, kRight = 20, kTop = 20, kBottom = 84;
constexpr double kBinsOfRadii = 25;
constexpr int kBinsOfP = 20;  // over [0, 1]

// A value on an edge belongs to the bin above; the slack is for edges like 0.95.
int whole_bins(double length, double width) {
  return static_cast<int>(std::floor(length / width + 1e-9));
}

/// A histogram's axis: `count` bins of equal width from `begin` on.
struct Bins {
  double begin, width;
  int count;

  double edge(int i) const { return begin + i * width; }
  int of(double value) const { return std::clamp(whole_bins(value - begin, width), 0, count - 1); }
  /// Where the bin of images that are in no other one begins, with room for its name.
  double aside() const { return begin - width * (1 + std::max(2, count / 6)); }
};

/// What of a run a panel shows.
struct Panel {
  std::string name;  // of the axis
  Bins bins;
  double (*value)(const CertificateRow&);
  bool (*has)(const RunRecord&);
  std::vector<std::string> tics;
};

double p_of(const CertificateRow& row) { return row.certificate.p_lower; }
double radius_of(const CertificateRow& row) { return row.certificate.radius; }

bool has_radii(const RunRecord& run) { return run.certified(); }
bool has_p(const RunRecord& run) {
  return run.certified() && !(run.rows.front().published && run.rows.front().sigma == 0);
}

std::string tic(const std::string& label, double at) {
  return fmt::format("'{}' {:.8g}", label, at);
}

Panel p_panel(const std::vector<RunRecord>& runs) {
  double least = 0.5;  // a multi-class radius may rest on less
  for (const RunRecord& run : runs) {
    if (!has_p(run)) continue;
    for (const CertificateRow& row : run.rows) {
      if (row.correct()) least = std::min(least, p_of(row));
    }
  }
  const int first = static_cast<int>(least * kBinsOfP);
  Panel panel{"lower bound on the probability of the answer",
              {static_cast<double>(first) / kBinsOfP, 1.0 / kBinsOfP, kBinsOfP - first},
              p_of,
              has_p,
              {}};
  for (int i = 0; i <= panel.bins.count; i += 2) {
    panel.tics.push_back(tic(fmt::format("{:.2g}", panel.bins.edge(i)), panel.bins.edge(i)));
  }
  return panel;
}

Panel radius_panel(const std::vector<RunRecord>& runs, Norm norm) {
  double largest = 0;
  for (const RunRecord& run : runs) largest = std::max(largest, largest_radius(run.rows));
  if (largest == 0) largest = radius_step(norm);
  const double width = tic_step(largest, kBinsOfRadii);
  const int count = whole_bins(largest, width) + 1;
  Panel panel{
      fmt::format("{} radius", norm_symbol(norm)), {0, width, count}, radius_of, has_radii, {}};
  for (const double radius : standard_radii(largest, norm, 10)) {
    panel.tics.push_back(tic(format_step(norm, radius), radius));
  }
  return panel;
}

/// Shares in percent: of the images that are wrong or abstained on, then of the bins.
std::vector<double> shares(const RunRecord& run, const Panel& panel) {
  std::vector<double> found(panel.bins.count + 1);
  const double each = 100.0 / static_cast<double>(run.rows.size());
  for (const CertificateRow& row : run.rows) {
    found[row.correct() ? 1 + panel.bins.of(panel.value(row)) : 0] += each;
  }
  return found;
}

/// The outline of the bins, and apart from it that of the images in none of them.
std::string outline(const std::vector<double>& shares, const Bins& bins) {
  const double left = bins.aside();
  std::string lines = fmt::format("{0:.8g} 0\n{0:.8g} {2:.6g}\n{1:.8g} {2:.6g}\n{1:.8g} 0\n\n",
                                  left, left + bins.width, shares[0]);
  lines += fmt::format("{:.8g} 0\n", bins.begin);
  for (int i = 0; i < bins.count; ++i) {
    lines += fmt::format("{:.8g} {:.6g}\n{:.8g} {:.6g}\n", bins.edge(i), shares[i + 1],
                         bins.edge(i + 1), shares[i + 1]);
  }
  return lines + fmt::format("{:.8g} 0\n", bins.edge(bins.count));
}

struct Script {
  std::string data, panels;
};

/// gnuplot wants the data before the first plot.
void add_panel(const Panel& panel, const std::vector<RunRecord>& runs, double top, double height,
               const std::string& legend, Script& script) {
  std::vector<std::string> plots;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!panel.has(runs[i])) continue;
    const std::string block = fmt::format("$panel{}_{}", static_cast<int>(top), i);
    script.data +=
        fmt::format("{} << END\n{}END\n", block, outline(shares(runs[i], panel), panel.bins));
    plots.push_back(fmt::format("{} with lines linewidth 2 {} notitle", block, curve_look(i)));
  }
  const Bins& bins = panel.bins;
  script.panels += fmt::format(
      "set tmargin at screen {}\nset bmargin at screen {}\n"
      "set xlabel '{}'\nset xrange [{:.8g}:{:.8g}]\n"
      "set xtics (\"wrong or\\nabstained\" {:.8g}, {})\nplot {}{}\n",
      1 - top / height, 1 - (top + kPanelHeight) / height, panel.name,
      bins.aside() - 0.6 * bins.width, bins.edge(bins.count) + 0.4 * bins.width,
      bins.aside() + 0.5 * bins.width, fmt::join(panel.tics, ", "), fmt::join(plots, ", "), legend);
}

std::string make_legend(const std::vector<RunRecord>& runs) {
  std::string entries;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].certified()) continue;
    entries += fmt::format(", keyentry with lines linewidth 2 {} title {}", curve_look(i),
                           quote_for_gnuplot(shorten(runs[i].name, kLongestLabel)));
  }
  return entries;
}

}  // namespace

Figure distribution_figure(const std::vector<RunRecord>& runs) {
  if (std::none_of(runs.begin(), runs.end(), has_radii)) {
    throw Error("figure: no certificates to draw");
  }
  std::vector<Panel> panels;
  if (std::any_of(runs.begin(), runs.end(), has_p)) panels.push_back(p_panel(runs));
  panels.push_back(radius_panel(runs, runs.front().norm));
  const auto entries = std::count_if(runs.begin(), runs.end(), has_radii);
  const double legend_height = kLine * (static_cast<double>(entries) + 0.5);
  const double height = kTop + static_cast<double>(panels.size()) * (kPanelHeight + kGap) - kGap +
                        kBottom + legend_height;
  Script script;
  double top = kTop;
  for (const Panel& panel : panels) {
    const bool last = &panel == &panels.back();
    add_panel(panel, runs, top, height, last ? make_legend(runs) : "", script);
    top += kPanelHeight + kGap;
  }
  return {fmt::format("{}{}set multiplot\nset lmargin at screen {}\nset rmargin at screen {}\n"
                      "set ylabel 'share of images (%)'\nset yrange [0:*]\nset grid noxtics\n"
                      "set key at screen 0.5,{} center top vertical maxcols 1 Left reverse "
                      "samplen 3\n{}unset multiplot\n",
                      axes_style(), script.data, kLeft / kFigureWidth, 1 - kRight / kFigureWidth,
                      legend_height / height, script.panels),
          height};
}

}  // namespace fedsmooth
