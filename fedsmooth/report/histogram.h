// How sure the certificates are: the distribution of p_lower, which ACR hides (a few easy images
// can carry it).
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/certificates.h"

namespace fedsmooth {

/// Images per 0.05 of p_lower, stacked by outcome, as an SVG fragment. Colours come from the page's
/// classes `correct`, `wrong` and `abstained`.
std::string p_lower_histogram(const std::vector<CertificateRow>& rows);

}  // namespace fedsmooth
