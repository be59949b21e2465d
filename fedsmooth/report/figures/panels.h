// Figures of a paper: panels side by side that share their axes and one legend.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/figures/curves.h"

namespace fedsmooth {

struct Panel {
  std::string title;
  std::vector<Curve> curves;  // those without points are left out
};

/// The curves of all panels that have points.
std::vector<Curve> all_curves(const std::vector<Panel>& panels);

/// The curves' labels, each once, in the order of their first curves; a label's place is its look.
std::vector<std::string> labels_of(const std::vector<Curve>& curves);

/// Whether any panel has a curve to draw.
bool has_curves(const std::vector<Panel>& panels);

/// The panels in one row. A label looks the same in all of them. Refuses panels without any curve;
/// one that lacks its curves beside others that have theirs stays empty.
Figure panel_figure(const std::vector<Panel>& panels);

}  // namespace fedsmooth
