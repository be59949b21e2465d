// The expected certified accuracy of a client on data like its own: with its label shares p_c,
//   sum over classes c of p_c * (certified accuracy at radius r on the test images of class c).
// Classes without certified images are left out, and the other shares scaled up to 1.
//
// It is an estimate from few images of each class, and the minimum of many estimates is more often
// too low than too high. The interval of the worst client therefore holds for all clients at once.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/clients.h"

namespace fedsmooth {

struct ClientAccuracy {
  int64_t client = 0;
  double accuracy = 0.0;
};

/// Returns the accuracies in the order of `clients`, without clients that hold no class with
/// certified images.
std::vector<ClientAccuracy> accuracy_by_client(const std::vector<CertificateRow>& rows,
                                               const std::vector<ClientRow>& clients, double r);

struct ClientSummary {
  int64_t clients = 0;  // those that hold a class with certified images
  double mean = 0.0;
  double median = 0.0;
  ClientAccuracy worst;  // the first one if several are equal
  /// An interval with a coverage of at least about 95% over the choice of test images, for the true
  /// minimum over the clients: the smallest lower and the smallest upper end of intervals that hold
  /// for all clients at once. These extend 2 to 3.5 standard errors to either side.
  double worst_low = 0.0, worst_high = 0.0;
};
/// Returns nothing if no client holds a class with certified images.
std::optional<ClientSummary> summarize_clients(const std::vector<CertificateRow>& rows,
                                               const std::vector<ClientRow>& clients, double r);

/// Returns the classes that some client holds but no certified image has.
std::vector<size_t> classes_left_out(const std::vector<CertificateRow>& rows,
                                     const std::vector<ClientRow>& clients);

}  // namespace fedsmooth
