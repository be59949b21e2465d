// Certified accuracy of several groups against two threats at once: at most m malicious clients in
// training, and a perturbation of at most r of the image. Every m follows from the same votes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/report/paired.h"

namespace fedsmooth {

struct Threats {
  std::vector<int64_t> malicious;             // rising
  std::vector<double> radii;                  // rising, in the run's norm
  std::vector<std::vector<double>> accuracy;  // for each m, at each radius
};

/// The run's rows against another number of malicious clients, with radii in its norm.
std::vector<CertificateRow> rows_against(const RunRecord& run, int64_t malicious);

/// At m = 0, 1, 2, 5, 10 and the table's own, as far as the groups withstand them. Of votes that
/// were stopped early, the table's own m alone. None if the run is not certified, or is of one
/// network.
std::optional<Threats> list_threats(const RunRecord& run);

/// Two runs with the same images in the same order, at the numbers that list_threats() has of both.
/// None unless both are of several groups.
std::optional<PairedThreats> compare_threats(const RunRecord& a, const RunRecord& b);

/// The table for the terminal, with at what level it holds and what it takes for granted. Lines are
/// at most 100 columns wide.
std::string render_threats(const RunRecord& run, const Threats& threats);

/// A - B in points for the terminal, with a mark where the 95% interval does not have 0.
std::string render_compared_threats(Norm norm, const PairedThreats& threats);

/// At which level the points of the table hold, in a sentence or two.
std::string level_of_threats(const RunRecord& run);

/// What the certificates take for granted and no code can check, a sentence each.
std::vector<std::string> list_assumptions(const RunRecord& run);

}  // namespace fedsmooth
