#include "cli/attack_summary.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "cli/progress.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kIntervalTail = 0.025;  // on either side of a 95% interval

std::set<int64_t> attacked_images(const std::vector<AttackRow>& rows) {
  std::set<int64_t> images;
  for (const AttackRow& row : rows) images.insert(row.index);
  return images;
}

// Certificates of the attacked images, if they are about the classifier that was attacked.
std::vector<CertificateRow> comparable(const fs::path& table, const json& identity,
                                       const std::set<int64_t>& images) {
  std::vector<CertificateRow> shared;
  if (!fs::exists(table) || !fs::exists(sidecar_path(table))) return shared;
  const json certified = read_sidecar(table)["identity"];
  for (const std::string key : {"model_sha256", "data_sha256", "sigma"}) {
    if (certified.value(key, json()) != identity[key]) return shared;
  }
  for (CertificateRow& row : read_certificates(table)) {
    if (images.contains(row.index)) shared.push_back(std::move(row));
  }
  return shared;
}

Share with_interval(double accuracy, int64_t images) {
  const auto standing = std::llround(accuracy * static_cast<double>(images));
  return {accuracy, binomial_lower_bound(standing, images, kIntervalTail),
          binomial_upper_bound(standing, images, kIntervalTail)};
}

// The attack computes in fp32 on CPU cores; certificates may be of another classifier.
void warn_of_other_base(const json& identity, const std::vector<CertificateRow>& certificates) {
  if (certificates.empty() || identity["base"] == certificates.front().base) return;
  print_error(fmt::format(
      "warning: the attack is on {}, the certificates are of {}: two classifiers, alike but for "
      "rounding",
      identity["base"].get<std::string>(), certificates.front().base));
}

void warn_of_broken(const std::vector<AttackRow>& attacks,
                    const std::vector<CertificateRow>& certificates) {
  const Contradictions found = find_contradictions(certificates, attacks);
  if (found.broken == 0) return;
  print_error(fmt::format(
      "warning: {} of {} images were misled within their certified radius; more votes (--n) tell a "
      "broken certificate from a narrow majority",
      found.broken, found.images));
}

json to_json(const fs::path& table, int64_t images, const std::vector<CurvePoint>& curve,
             const std::vector<CertificateRow>& certificates) {
  json points = json::array();
  for (const CurvePoint& point : curve) {
    const Share share = with_interval(point.accuracy, images);
    points.push_back({{"epsilon", point.radius},
                      {"accuracy", share.value},
                      {"low", share.low},
                      {"high", share.high}});
    if (certificates.empty()) continue;
    points.back()["certified_accuracy"] = certified_accuracy(certificates, point.radius);
  }
  return {{"attacks", table.string()}, {"images", images}, {"accuracy_under_attack", points}};
}

std::string render(int64_t images, const std::vector<CurvePoint>& curve,
                   const std::vector<CertificateRow>& certificates) {
  const bool both = !certificates.empty();
  std::string text = fmt::format("  {:>8}{:>16}{:>18}{}\n", "epsilon", "under attack %",
                                 "95% interval", both ? "   certified %" : "");
  for (const CurvePoint& point : curve) {
    const Share share = with_interval(point.accuracy, images);
    text += fmt::format("  {:>8}{:>16}{:>18}", point.radius, percent(share.value),
                        percent(share.low) + " to " + percent(share.high));
    if (both)
      text += fmt::format("{:>14}", percent(certified_accuracy(certificates, point.radius)));
    text += "\n";
  }
  text += fmt::format("  {} images", images);
  if (both && static_cast<int64_t>(certificates.size()) < images) {
    text += fmt::format(", {} of them with certificates", certificates.size());
  }
  return text + "\n";
}

}  // namespace

void print_attacks(const fs::path& table, const json& identity, const fs::path& certificates,
                   const Common& common) {
  const std::vector<AttackRow> rows = read_attacks(table);
  const std::set<int64_t> attacked = attacked_images(rows);
  const auto images = static_cast<int64_t>(attacked.size());
  const std::vector<CurvePoint> curve = attacked_accuracy(rows);
  const std::vector<CertificateRow> shared = comparable(certificates, identity, attacked);
  if (common.json) {
    fmt::print("{}\n", dump_json(to_json(table, images, curve, shared)));
  } else if (!common.quiet) {
    fmt::print("{}{}\n", render(images, curve, shared), table.string());
  }
  warn_of_other_base(identity, shared);
  warn_of_broken(rows, shared);
}

}  // namespace fedsmooth::cli
