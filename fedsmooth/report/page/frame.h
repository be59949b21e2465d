// What pages are built of: the page itself with its style, sections, figures.
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/report/figures/canvas.h"

namespace fedsmooth {

/// A whole page; it loads nothing from elsewhere. `title` is escaped, `body` is HTML.
std::string page(std::string_view title, std::string_view body);

/// The same for a part of it.
std::string section(std::string_view title, std::string_view body);

/// The figure as an SVG. Needs gnuplot.
std::string figure(const Figure& drawn);

}  // namespace fedsmooth
