#include "fedsmooth/report/attacked.h"

#include <algorithm>
#include <map>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

constexpr double kAny = 1e300;

}  // namespace

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
  // For each image, the shortest way on which an attack misled the classifier.
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
