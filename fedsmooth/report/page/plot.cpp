#include "fedsmooth/report/page/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/canvas.h"

namespace fedsmooth {
namespace {

// A letter at the narrowest width of which labels keep free: 13 pixels where the SVG has 330.
constexpr double kLetter = 13.0 / 330, kLetterWidth = 0.58 * kLetter;

struct Box {
  double left, right, top, bottom;
};

Box box_of(const Plot& plot, size_t labels) {
  const double letter = 0.7 * kLetter * plot.width;  // narrow screens add room around the SVG
  return {8 + kLetterWidth * plot.width * static_cast<double>(labels), plot.width - 10,
          1.9 * letter, plot.height - (plot.names_x ? 2.9 : 0.6) * letter};
}

struct Scale {
  const Plot& plot;
  Box box;

  double x(double value) const {
    const Axis& axis = plot.x;
    return box.left + (box.right - box.left) * (value - axis.from) / (axis.to - axis.from);
  }
  double y(double value) const {
    const Axis& axis = plot.y;
    return box.bottom - (box.bottom - box.top) * (value - axis.from) / (axis.to - axis.from);
  }
};

/// Lines from corner to corner; horizontal and vertical ones in the short form.
std::string path_of(const Series& series, const Scale& scale) {
  std::string path;
  double last_x = 0, last_y = 0;
  for (const auto& [at, value] : series.path) {
    const double x = scale.x(at), y = std::isnan(value) ? NAN : scale.y(value);
    if (path.empty() || std::isnan(last_y)) {
      if (!std::isnan(y)) path += fmt::format("M{:.1f},{:.1f}", x, y);
    } else if (!std::isnan(y)) {
      const bool same_x = std::abs(x - last_x) < 0.05, same_y = std::abs(y - last_y) < 0.05;
      if (same_x && same_y) continue;
      path += same_y   ? fmt::format("H{:.1f}", x)
              : same_x ? fmt::format("V{:.1f}", y)
                       : fmt::format("L{:.1f},{:.1f}", x, y);
    }
    last_x = x;
    last_y = y;
  }
  return path;
}

/// Bars from the path's bottom corner to its top corner, one after the other.
std::string bars_of(const Series& series, const Scale& scale) {
  std::string path;
  const double gap = 0.04 * series.width;
  for (size_t i = 0; i + 1 < series.path.size(); i += 2) {
    const auto& [at, bottom] = series.path[i];
    const double top = series.path[i + 1].second;
    if (top <= bottom) continue;
    path += fmt::format("M{:.1f},{:.1f}V{:.1f}H{:.1f}V{:.1f}Z", scale.x(at + gap), scale.y(bottom),
                        scale.y(top), scale.x(at + series.width - gap), scale.y(bottom));
  }
  return path;
}

std::string draw_series(const Series& series, const Entry& entry, const Scale& scale) {
  if (series.kind == Series::Kind::kBars) {
    return fmt::format(
        "<g class=\"series\" data-entry=\"{}\"><path class=\"bars\" style=\"fill: {}\" "
        "d=\"{}\"/></g>\n",
        series.entry, entry.colour, bars_of(series, scale));
  }
  const bool step = series.kind != Series::Kind::kBins;
  return fmt::format(
      "<g class=\"series\" data-entry=\"{}\"><path class=\"{}\" style=\"stroke: {}{}\" d=\"{}\"/>"
      "{}</g>\n",
      series.entry, series.thin() ? "line thin" : "line", entry.colour,
      entry.dashes.empty() || series.thin() ? "" : "; stroke-dasharray: " + entry.dashes,
      path_of(series, scale),
      step ? fmt::format("<circle r=\"4\" style=\"fill: {}\" visibility=\"hidden\"/>", entry.colour)
           : "");
}

std::string draw_axes(const Plot& plot, const Scale& scale) {
  const Box& box = scale.box;
  std::string lines, labels;
  for (const Tic& tic : plot.y.tics) {
    lines += fmt::format("M{:.1f},{:.1f}H{:.1f}", box.left, scale.y(tic.at), box.right);
    labels +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" dy=\".35em\" text-anchor=\"end\">{}</text>\n",
                    box.left - 6, scale.y(tic.at), escape_html(tic.name));
  }
  for (const Tic& tic : plot.x.tics) {
    lines += fmt::format("M{:.1f},{:.1f}V{:.1f}", scale.x(tic.at), box.top, box.bottom);
    if (!plot.names_x) continue;
    labels += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" dy=\"1.25em\" text-anchor=\"middle\">{}</text>\n",
        scale.x(tic.at), box.bottom, escape_html(tic.name));
  }
  if (plot.names_x) {
    labels += fmt::format(
        "<text class=\"axis-label\" x=\"{:.1f}\" y=\"{:.1f}\" dy=\"2.6em\" "
        "text-anchor=\"middle\">{}</text>\n",
        (box.left + box.right) / 2, box.bottom, escape_html(plot.x.label));
  }
  return fmt::format(
      "<path class=\"grid\" d=\"{}\"/>\n<path class=\"axis\" d=\"M{:.1f},{:.1f}V{:.1f}H{:.1f}\"/>\n"
      "{}<text class=\"axis-label\" x=\"2\" y=\"{:.1f}\" dy=\"-.8em\">{}</text>\n",
      lines, box.left, box.top, box.bottom, box.right, labels, box.top, escape_html(plot.y.label));
}

const char* kind_name(Series::Kind kind) {
  switch (kind) {
    case Series::Kind::kUntil:
      return "until";
    case Series::Kind::kFrom:
      return "from";
    case Series::Kind::kLine:
      return "line";
    case Series::Kind::kBins:
      return "bins";
    case Series::Kind::kBars:
      return "bars";
  }
  return "";
}

}  // namespace

std::vector<Tic> round_tics(double from, double to, double most) {
  const double step = tic_step(to - from, most);
  std::vector<Tic> tics;
  for (double i = std::ceil(from / step - 1e-9); i * step <= to + 1e-9 * step; ++i) {
    tics.push_back({i * step, fmt::format("{:.6g}", i == 0 ? 0.0 : i * step)});
  }
  return tics;
}

size_t longest_tic(const Axis& axis) {
  size_t longest = 1;
  for (const Tic& tic : axis.tics) longest = std::max(longest, tic.name.size());
  return longest;
}

std::string render_plot(const Plot& plot, const std::vector<Entry>& legend,
                        std::string_view described, size_t labels) {
  const Scale scale{plot, box_of(plot, labels)};
  std::string drawn;
  for (const Series& series : plot.series) {
    drawn += draw_series(series, legend[series.entry], scale);
  }
  return fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" style=\"--w: {0}\" role=\"img\" tabindex=\"0\" "
      "aria-label=\"{2}\">\n{3}<path class=\"cursor\" visibility=\"hidden\" "
      "d=\"M0,{4:.1f}V{5:.1f}\"/>\n{6}</svg>\n",
      plot.width, plot.height, escape_html(described), draw_axes(plot, scale), scale.box.top,
      scale.box.bottom, drawn);
}

nlohmann::json plot_data(const Plot& plot, size_t labels) {
  const Box box = box_of(plot, labels);
  nlohmann::json series = nlohmann::json::array();
  for (const Series& one : plot.series) {
    nlohmann::json data = {
        {"entry", one.entry}, {"kind", kind_name(one.kind)}, {"x", one.x}, {"y", one.y}};
    if (!one.suffix.empty()) data["suffix"] = one.suffix;
    if (!one.names.empty()) data["names"] = one.names;
    if (one.width > 0) data["width"] = one.width;
    series.push_back(std::move(data));
  }
  const auto round = [](double value) { return std::round(10 * value) / 10; };
  return {{"title", plot.title},
          {"box", {round(box.left), round(box.right), round(box.top), round(box.bottom)}},
          {"x",
           {{"label", plot.x.label},
            {"from", plot.x.from},
            {"to", plot.x.to},
            {"digits", plot.x.digits}}},
          {"y",
           {{"label", plot.y.label},
            {"from", plot.y.from},
            {"to", plot.y.to},
            {"digits", plot.y.digits}}},
          {"series", std::move(series)}};
}

}  // namespace fedsmooth
