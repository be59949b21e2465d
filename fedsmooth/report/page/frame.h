// What pages are built of: the page itself with its style, sections, figures.
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/report/figures/canvas.h"

namespace fedsmooth {

/// A whole page with its style and script; it loads nothing from elsewhere, and its policy keeps
/// browsers from it. `title` is escaped, `body` is HTML.
std::string page(std::string_view title, std::string_view body);

/// The same for a part of it.
std::string section(std::string_view title, std::string_view body);

/// The figure as an SVG, of any width: on a narrow screen it scrolls rather than shrink beyond what
/// can be read. Needs gnuplot.
std::string figure(const Figure& drawn);

}  // namespace fedsmooth
