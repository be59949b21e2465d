// Histograms of a page: what becomes of all images, how sure certificates are, how clients fare.
#pragma once

#include <vector>

#include "fedsmooth/report/client_accuracy.h"
#include "fedsmooth/report/page/chart.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Draws the share of images by the lower bound on the probability of a correct answer, and by its
/// radius: an outline for each run. Images that are wrong or abstained on are a bin of their own,
/// which an average certified radius hides (Sun et al., 2025: it can be raised by giving up on hard
/// images). Runs that are not certified are left out, and so are published tables without sigma
/// from the first. Throws an Error if none is left.
Chart distribution_chart(const std::vector<RunRecord>& runs);

/// Draws the number of images per 0.05 of p_lower, stacked by outcome.
Chart confidence_chart(const std::vector<CertificateRow>& rows);

/// Draws the number of clients per 5% of accuracy at radius 0.
Chart client_chart(const std::vector<ClientAccuracy>& clients);

}  // namespace fedsmooth
