#include "fedsmooth/report/attack_summary.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/facts.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

std::set<int64_t> attacked_images(const std::vector<AttackRow>& rows) {
  std::set<int64_t> images;
  for (const AttackRow& row : rows) images.insert(row.index);
  return images;
}

// Certificates of the attacked images, if they are about the classifier that was attacked.
std::vector<CertificateRow> comparable(const fs::path& table, const SubjectIdentity& identity,
                                       const std::set<int64_t>& images) {
  std::vector<CertificateRow> shared;
  if (!fs::exists(table) || !fs::exists(sidecar_path(table))) return shared;
  if (!about_the_same(read_identity(table), identity)) return shared;
  for (CertificateRow& row : read_certificates(table)) {
    if (images.contains(row.index)) shared.push_back(std::move(row));
  }
  return shared;
}

Proportion with_interval(double accuracy, int64_t images) {
  return proportion(std::llround(accuracy * static_cast<double>(images)), images);
}

// The attack computes in fp32 on CPU cores; certificates may be of another classifier.
void warn_of_other_base(const SubjectIdentity& identity,
                        const std::vector<CertificateRow>& certificates,
                        std::vector<std::string>& warnings) {
  if (certificates.empty() || identity.base == certificates.front().base) return;
  warnings.push_back(
      fmt::format("the attack is on {}, the certificates are of {}: two classifiers, alike but for "
                  "rounding",
                  identity.base.value_or(""), certificates.front().base));
}

void warn_of_broken(const std::vector<AttackRow>& attacks,
                    const std::vector<CertificateRow>& certificates,
                    std::vector<std::string>& warnings) {
  const Contradictions found = find_contradictions(certificates, attacks);
  if (found.broken == 0) return;
  warnings.push_back(
      fmt::format("{} of {} images were misled within their certified radius; a larger n "
                  "tells a broken certificate from a narrow majority",
                  found.broken, found.images));
}

}  // namespace

AttackSummary summarize_attacks(const fs::path& table, const SubjectIdentity& identity,
                                const fs::path& certificates) {
  const std::vector<AttackRow> rows = read_attacks(table);
  const std::set<int64_t> attacked = attacked_images(rows);
  const std::vector<CertificateRow> shared = comparable(certificates, identity, attacked);
  AttackSummary summary{std::ssize(attacked), std::ssize(shared), {}, {}};
  for (const CurvePoint& point : attacked_accuracy(rows)) {
    summary.points.push_back({point.radius, with_interval(point.accuracy, summary.images), {}});
    if (!shared.empty()) summary.points.back().certified = certified_accuracy(shared, point.radius);
  }
  warn_of_other_base(identity, shared, summary.warnings);
  warn_of_broken(rows, shared, summary.warnings);
  return summary;
}

std::string render_attacks(const AttackSummary& summary) {
  const bool both = summary.certified_images > 0;
  std::string text = fmt::format("  {:>8}{:>16}{:>18}{}\n", "epsilon", "under attack %",
                                 "95% interval", both ? "   certified %" : "");
  for (const AttackSummary::Point& point : summary.points) {
    text += fmt::format("  {:>8}{:>16}{:>18}", point.epsilon, percent(point.accuracy.value),
                        percent(point.accuracy.low) + " to " + percent(point.accuracy.high));
    if (point.certified) text += fmt::format("{:>14}", percent(*point.certified));
    text += "\n";
  }
  text += fmt::format("  {} images", summary.images);
  if (both && summary.certified_images < summary.images) {
    text += fmt::format(", {} of them with certificates", summary.certified_images);
  }
  return text + "\n";
}

}  // namespace fedsmooth
