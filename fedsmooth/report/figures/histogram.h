// Histograms over [0, 1], as SVG fragments in the page's colours.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/report/client_accuracy.h"

namespace fedsmooth {

/// Images per 0.05 of p_lower, stacked by outcome (classes `correct`, `wrong`, `abstained`): how
/// sure the certificates are, which ACR hides (a few easy images can carry it).
std::string p_lower_histogram(const std::vector<CertificateRow>& rows);

/// Clients per 0.05 of accuracy (class `clients`).
std::string client_histogram(const std::vector<ClientAccuracy>& clients);

}  // namespace fedsmooth
