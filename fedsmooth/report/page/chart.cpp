#include "fedsmooth/report/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/json.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/canvas.h"

namespace fedsmooth {
namespace {

std::string_view layout_name(Chart::Layout layout) {
  return layout == Chart::Layout::kOne ? "one" : layout == Chart::Layout::kRow ? "row" : "stack";
}

std::string swatch(const Entry& entry, bool filled) {
  if (filled) {
    return fmt::format(
        "<svg class=\"swatch\" viewBox=\"0 0 28 12\" aria-hidden=\"true\"><path "
        "d=\"M8,0H20V12H8Z\" style=\"fill: {}\"/></svg>",
        entry.colour);
  }
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 28 12\" aria-hidden=\"true\"><path d=\"M0,6H28\" "
      "style=\"stroke: {}{}\"/></svg>",
      entry.colour, entry.dashes.empty() ? "" : "; stroke-dasharray: " + entry.dashes);
}

std::string render_legend(const Chart& chart, bool filled) {
  std::string items;
  for (size_t i = 0; i < chart.legend.size(); ++i) {
    items += fmt::format(
        "<li><label data-entry=\"{}\"><input type=\"checkbox\" checked> {}<span>{}</span></label>"
        "</li>\n",
        i, swatch(chart.legend[i], filled), escape_html(chart.legend[i].label));
  }
  for (const std::string& hint : chart.hints) {
    items += fmt::format("<li class=\"hint\">{}</li>\n", escape_html(hint));
  }
  return "<ul class=\"legend\">\n" + items + "</ul>\n";
}

}  // namespace

std::string chart_json(const Chart& chart) {
  size_t labels = 1;
  for (const Plot& plot : chart.plots) labels = std::max(labels, longest_tic(plot.y));
  nlohmann::json plots = nlohmann::json::array(), legend = nlohmann::json::array();
  for (const Plot& plot : chart.plots) plots.push_back(plot_data(plot, labels));
  for (const Entry& entry : chart.legend) legend.push_back(one_line(entry.label));
  std::string text =
      dump_json({{"name", chart.name}, {"legend", std::move(legend)}, {"plots", std::move(plots)}});
  // The element that holds it ends at "</script", whatever quotes stand around that.
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string render_chart(const Chart& chart) {
  size_t labels = 1;
  bool filled = false;
  for (const Plot& plot : chart.plots) {
    labels = std::max(labels, longest_tic(plot.y));
    for (const Series& series : plot.series) filled |= series.kind == Series::Kind::kBars;
  }
  std::string plots;
  for (const Plot& plot : chart.plots) {
    const std::string title = plot.title.empty() ? ""
                                                 : fmt::format("<p class=\"plot-title\">{}</p>\n",
                                                               escape_html(plot.title));
    plots +=
        fmt::format("<div class=\"plot\">\n{}{}</div>\n", title,
                    render_plot(plot, chart.legend,
                                fmt::format("{}{}{}; the arrow keys read it off", chart.description,
                                            plot.title.empty() ? "" : ", ", plot.title),
                                labels));
  }
  return fmt::format(
      "<div class=\"chart {}\">\n<div class=\"plots\">\n{}</div>\n{}"
      "<script type=\"application/json\">{}</script>\n</div>\n",
      layout_name(chart.layout), plots, render_legend(chart, filled), chart_json(chart));
}

Entry curve_entry(const std::string& label, size_t index) {
  const std::string colour = curve_colour(index);
  // Black would be lost on a dark page.
  return {label, colour == "#000000" ? "var(--text)" : colour, curve_dashes(index)};
}

}  // namespace fedsmooth
