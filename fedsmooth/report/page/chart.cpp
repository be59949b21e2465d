#include "fedsmooth/report/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figures/canvas.h"

namespace fedsmooth {
namespace {

// In units of the SVG; there is room for tics in the larger letters of a narrow screen.
constexpr double kWidth = 720, kHeight = 426;
constexpr double kLeft = 56, kRight = 704, kTop = 42, kBottom = 360;
constexpr double kMostTics = 7;

struct Scale {
  Axes axes;
  double x(double radius) const { return kLeft + (kRight - kLeft) * radius / axes.x_max; }
  double y(double share) const { return kBottom - (kBottom - kTop) * share / axes.y_max; }
};

/// Corners of a staircase as a path of horizontal and vertical lines.
std::string path_of(const std::vector<CurvePoint>& corners, const Scale& scale) {
  std::string path =
      fmt::format("M{:.2f},{:.2f}", scale.x(corners[0].radius), scale.y(corners[0].accuracy));
  for (size_t i = 1; i < corners.size(); ++i) {
    if (corners[i].radius != corners[i - 1].radius) {
      path += fmt::format("H{:.2f}", scale.x(corners[i].radius));
    }
    if (corners[i].accuracy != corners[i - 1].accuracy) {
      path += fmt::format("V{:.2f}", scale.y(corners[i].accuracy));
    }
  }
  return path;
}

std::string stroke(size_t index) {
  const std::string colour = curve_colour(index);
  return colour == "#000000" ? "var(--text)" : colour;  // which a dark page would swallow
}

std::string draw_curve(const Curve& curve, size_t index, const Scale& scale) {
  std::string drawn;
  if (!curve.attacked.empty()) {
    drawn = fmt::format("<path class=\"attacked\" style=\"stroke: {}\" d=\"{}\"/>\n", stroke(index),
                        path_of(upper_corners(curve.attacked, scale.axes.x_max), scale));
  }
  const std::string dashes = curve_dashes(index);
  return fmt::format(
      "<g class=\"curve\">\n{}<path class=\"certified\" style=\"stroke: {}{}\" d=\"{}\"/>\n"
      "<circle r=\"4.5\" style=\"fill: {}\" visibility=\"hidden\"/></g>\n",
      drawn, stroke(index), dashes.empty() ? "" : "; stroke-dasharray: " + dashes,
      path_of(lower_corners(thin_out(curve.points, scale.axes.x_max)), scale), stroke(index));
}

std::string draw_axes(const Scale& scale) {
  const Axes& axes = scale.axes;
  std::string lines, labels;
  const double y_step = tic_step(100 * axes.y_max, 6) / 100;
  for (double share = 0; share <= axes.y_max + 1e-9; share += y_step) {
    lines += fmt::format("M{:.1f},{:.1f}H{:.1f}", kLeft, scale.y(share), kRight);
    labels += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f}</text>\n",
                          kLeft - 8, scale.y(share) + 5, 100 * share);
  }
  for (const auto& [radius, name] : radius_tics(axes, kMostTics)) {
    lines += fmt::format("M{:.1f},{:.1f}V{:.1f}", scale.x(radius), kTop, kBottom);
    labels += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                          scale.x(radius), kBottom + 30, name);
  }
  return fmt::format(
      "<path class=\"grid\" d=\"{}\"/>\n<path class=\"axis\" d=\"M{},{}V{}H{}\"/>\n{}"
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{} radius</text>\n"
      "<text x=\"0\" y=\"22\">certified accuracy (%)</text>\n",
      lines, kLeft, kTop, kBottom, kRight, labels, (kLeft + kRight) / 2, kBottom + 58,
      norm_symbol(axes.norm));
}

std::string swatch(size_t index) {
  const std::string dashes = curve_dashes(index);
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 36 6\" aria-hidden=\"true\"><path d=\"M0,3H36\" "
      "style=\"stroke: {}{}\"/></svg>",
      stroke(index), dashes.empty() ? "" : "; stroke-dasharray: " + dashes);
}

std::string legend_row(const Curve& curve, size_t index) {
  const auto attacked = attacked_at(curve.attacked, 0);
  return fmt::format(
      "<tr><th><label><input type=\"checkbox\" checked> {}<span>{}</span></label></th>"
      "<td>{}</td><td>{}</td></tr>\n",
      swatch(index), escape_html(curve.label), percent(curve.points.front().accuracy),
      attacked ? percent(*attacked) : "");
}

}  // namespace

std::string render_chart(const std::vector<Curve>& curves) {
  const Scale scale{Axes::around(curves, 1.1)};
  std::string drawn, rows;
  bool attacked = false;
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].points.empty()) continue;
    drawn += draw_curve(curves[i], i, scale);
    rows += legend_row(curves[i], i);
    attacked |= !curves[i].attacked.empty();
  }
  if (drawn.empty()) throw Error("figure: no certificates to draw");
  return fmt::format(
      "<div class=\"chart{}\" data-left=\"{}\" data-right=\"{}\" data-top=\"{}\" "
      "data-bottom=\"{}\" data-radius=\"{}\" data-percent=\"{}\" data-digits=\"{}\">\n"
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" tabindex=\"0\" aria-label=\"certified accuracy "
      "against radius; the arrow keys read it off\">\n{}<path class=\"cursor\" "
      "visibility=\"hidden\" d=\"M0,{}V{}\"/>\n{}</svg>\n"
      "<table class=\"legend-table\"><thead><tr><th>at {} radius <output>0</output></th>"
      "<th>certified %</th><th>attacked %</th></tr></thead>\n<tbody>\n{}</tbody></table>\n</div>\n",
      attacked ? " with-attacks" : "", kLeft, kRight, kTop, kBottom, scale.axes.x_max,
      100 * scale.axes.y_max, scale.axes.norm == Norm::kLinf ? 5 : 3, kWidth, kHeight,
      draw_axes(scale), kTop, kBottom, drawn, norm_symbol(scale.axes.norm), rows);
}

}  // namespace fedsmooth
