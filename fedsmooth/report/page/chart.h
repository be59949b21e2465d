// Charts of the page: plots that share a legend. Values are read off beside the pointer, by touch
// or by the arrow keys; curves can be switched off, and the chart saved as an SVG. Without its
// script a chart is a picture with a legend.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/page/plot.h"

namespace fedsmooth {

struct Chart {
  enum class Layout { kOne, kRow, kStack };  // one plot; side by side; one below the other

  std::string name;         // of the saved file; unique on the page
  std::string description;  // for screen readers
  std::vector<Plot> plots;
  std::vector<Entry> legend;
  std::vector<std::string> hints = {};  // what thin lines are, such as "thin dashes: attacked"
  Layout layout = Layout::kOne;
};

/// Returns HTML with the plots as SVGs, the legend and, as JSON, the values that are read off.
/// Names are escaped.
std::string render_chart(const Chart& chart);

/// Returns the JSON alone, which contains no "<".
std::string chart_json(const Chart& chart);

/// Returns the entry of run number `index`, which has the same look in all charts and figures.
Entry curve_entry(const std::string& label, size_t index);

}  // namespace fedsmooth
