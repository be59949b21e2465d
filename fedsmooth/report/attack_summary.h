// Summarises accuracy under attack, with certified accuracy for comparison.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/records/certificate_identity.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {

struct AttackSummary {
  struct Point {
    double epsilon = 0;
    Proportion accuracy;              // accuracy under attack, with a 95% interval
    std::optional<double> certified;  // certified accuracy at this radius on the certified images
  };
  int64_t images = 0;
  int64_t certified_images = 0;  // attacked images that have certificates
  std::vector<Point> points;
  std::vector<std::string> warnings;
};

/// Summarises a table of attacks. If the certificates have the identity `identity`, adds their
/// accuracy, and a warning if an attack broke one.
AttackSummary summarize_attacks(const std::filesystem::path& table, const SubjectIdentity& identity,
                                const std::filesystem::path& certificates);

/// Formats the summary as a table for the terminal.
std::string render_attacks(const AttackSummary& summary);

}  // namespace fedsmooth
