#include "fedsmooth/report/attacks.h"

#include <algorithm>
#include <map>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/report/tsv.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader = "idx\tlabel\tepsilon\tpredict\tcorrect\tperturbation\n";
constexpr int64_t kMaxIndex = 1'000'000'000;
constexpr double kAny = 1e300;

}  // namespace

std::string attack_header() { return std::string(kHeader); }

std::string format_attack(const AttackRow& row) {
  return fmt::format("{}\t{}\t{}\t{}\t{:d}\t{:.6f}\n", row.index, row.label, row.epsilon,
                     row.predict, row.correct(), row.perturbation);
}

std::vector<AttackRow> parse_attacks(std::string_view text, const std::string& name) {
  std::vector<AttackRow> rows;
  parse_tsv(text, kHeader, name, [&](const TsvRow& row) {
    rows.push_back({row.whole(0, 0, kMaxIndex), row.whole(1, 0, kMaxIndex), row.number(2, 0, kAny),
                    row.whole(3, kAbstain, kMaxIndex), row.number(5, 0, kAny)});
    if (row.whole(4, 0, 1) != rows.back().correct()) {
      throw Error("{}: correct does not follow from predict and label", row.where);
    }
  });
  return rows;
}

std::vector<AttackRow> read_attacks(const std::filesystem::path& path) {
  return parse_attacks(read_file(path), path.string());
}

std::vector<CurvePoint> attacked_accuracy(const std::vector<AttackRow>& rows) {
  if (rows.empty()) throw Error("attack: no rows");
  // The smallest epsilon that broke an image.
  std::map<int64_t, double> broken;
  std::map<double, int64_t> epsilons;
  for (const AttackRow& row : rows) {
    double& smallest = broken.try_emplace(row.index, kAny).first->second;
    if (!row.correct() && row.epsilon < smallest) smallest = row.epsilon;
    epsilons[row.epsilon] = 0;
  }
  std::vector<CurvePoint> curve;
  for (auto& [epsilon, standing] : epsilons) {
    for (const auto& [index, smallest] : broken) standing += smallest > epsilon;
    curve.push_back({epsilon, static_cast<double>(standing) / static_cast<double>(broken.size())});
  }
  return curve;
}

std::optional<double> attacked_at(const std::vector<CurvePoint>& curve, double r) {
  std::optional<double> accuracy;
  for (const CurvePoint& point : curve) {
    if (point.radius <= r) accuracy = point.accuracy;
  }
  return accuracy;
}

Contradictions find_contradictions(const std::vector<CertificateRow>& certificates,
                                   const std::vector<AttackRow>& attacks) {
  // Of each image, the shortest way on which an attack misled the classifier.
  std::map<int64_t, double> shortest;
  for (const AttackRow& row : attacks) {
    double& way = shortest.try_emplace(row.index, kAny).first->second;
    if (!row.correct()) way = std::min(way, row.perturbation);
  }
  Contradictions found;
  for (const CertificateRow& row : certificates) {
    const auto attacked = shortest.find(row.index);
    if (attacked == shortest.end()) continue;
    found.images += 1;
    found.broken += row.correct() && attacked->second < row.certificate.radius;
  }
  return found;
}

}  // namespace fedsmooth
