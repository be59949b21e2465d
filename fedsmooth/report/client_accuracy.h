// What a client may expect on data like its own: with its label shares p_c,
//   sum over classes c of p_c * (certified accuracy at radius r on the test images of class c).
// Classes without certified images are left out, and the other shares scaled up to 1.
#pragma once

#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/clients.h"

namespace fedsmooth {

struct ClientAccuracy {
  int64_t client = 0;
  double accuracy = 0.0;
};

/// In the order of `clients`; without those that hold no class with certified images.
std::vector<ClientAccuracy> accuracy_by_client(const std::vector<CertificateRow>& rows,
                                               const std::vector<ClientRow>& clients, double r);

struct ClientSummary {
  double mean = 0.0;
  double median = 0.0;
  ClientAccuracy worst;  // the first of equals
};
/// The summary of at least one client.
ClientSummary summarize_clients(const std::vector<ClientAccuracy>& accuracies);

/// Classes that some client holds but no certified image has.
std::vector<size_t> classes_left_out(const std::vector<CertificateRow>& rows,
                                     const std::vector<ClientRow>& clients);

}  // namespace fedsmooth
