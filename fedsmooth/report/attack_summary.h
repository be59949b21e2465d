// Accuracy under attack beside certified accuracy.
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
    Proportion accuracy;              // under attack, with a 95% interval
    std::optional<double> certified;  // accuracy at this radius on those of the images
  };
  int64_t images = 0;
  int64_t certified_images = 0;  // those that have certificates
  std::vector<Point> points;
  std::vector<std::string> warnings;
};

/// Summarises a table of attacks. Certificates of the same classifier, by `identity`, are set
/// beside it, with a warning if an attack broke one.
AttackSummary summarize_attacks(const std::filesystem::path& table, const SubjectIdentity& identity,
                                const std::filesystem::path& certificates);

/// As a table for the terminal.
std::string render_attacks(const AttackSummary& summary);

}  // namespace fedsmooth
