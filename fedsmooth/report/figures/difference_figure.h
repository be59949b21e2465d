// Two curves of certified accuracy, and below them their paired difference.
#pragma once

#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/paired.h"

namespace fedsmooth {

/// For runs with the same images, as from keep_common_images(). The band is the 95% interval at
/// each radius by itself.
Figure difference_figure(const RunRecord& a, const RunRecord& b, const PairedComparison& compared);

}  // namespace fedsmooth
