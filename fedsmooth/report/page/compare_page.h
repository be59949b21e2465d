// Two tables beside each other, as a page and as a table for the terminal.
#pragma once

#include <string>

#include "fedsmooth/report/paired.h"

namespace fedsmooth {

/// One self-contained page. Names are escaped. Needs gnuplot for the figure.
std::string render_compare_page(const ComparedRuns& runs);

/// At most 100 columns wide.
std::string render_compare_table(const ComparedRuns& runs);

}  // namespace fedsmooth
