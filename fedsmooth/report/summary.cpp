#include "fedsmooth/report/summary.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr double kIntervalTail = 0.025;  // on either side of a 95% interval
constexpr double kRho = 0.001;           // as in Cohen's analyze.py

template <typename Predicate>
int64_t count(const std::vector<CertificateRow>& rows, Predicate predicate) {
  if (rows.empty()) throw Error("no certificates to summarize; fedsmooth certify makes them");
  return std::count_if(rows.begin(), rows.end(), predicate);
}

int64_t count_certified(const std::vector<CertificateRow>& rows, double r) {
  return count(rows, [r](const CertificateRow& row) {
    return row.correct() && row.certificate.radius >= r;
  });
}

std::optional<double> high_probability(const std::vector<CertificateRow>& rows, double accuracy) {
  double alpha = 0;  // the bound is monotone in it, so the largest covers every row
  for (const CertificateRow& row : rows) alpha = std::max(alpha, row.alpha);
  if (alpha == 0) return std::nullopt;
  if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.shared; })) {
    // Errors that occur together: only Markov's inequality bounds how many of N there may be.
    return std::max(0.0, accuracy - alpha / kRho);
  }
  const auto images = static_cast<double>(rows.size());
  const double log_rho = std::log(1 / kRho);
  return std::max(0.0, accuracy - alpha - std::sqrt(2 * alpha * (1 - alpha) * log_rho / images) -
                           log_rho / (3 * images));
}

std::vector<AtRadius> tabulate(const std::vector<CertificateRow>& rows, Norm norm) {
  std::vector<AtRadius> table;
  for (const double radius : standard_radii(largest_radius(rows), norm)) {
    table.push_back(accuracy_at(rows, radius));
  }
  return table;
}

double average_certified_radius(const std::vector<CertificateRow>& rows) {
  double sum = 0;
  for (const CertificateRow& row : rows) sum += row.correct() ? row.certificate.radius : 0;
  return sum / static_cast<double>(rows.size());
}

std::vector<ClassSummary> summarize_classes(const std::vector<CertificateRow>& rows) {
  std::vector<ClassSummary> classes;
  const auto at = [&](int64_t label) -> ClassSummary& {
    const auto i = static_cast<size_t>(label);
    if (i >= classes.size()) classes.resize(i + 1);
    return classes[i];
  };
  for (const CertificateRow& row : rows) {
    ClassSummary& c = at(row.label);
    c.images += 1;
    c.correct += row.correct();
    c.abstained += row.abstained();
    c.mean_radius += row.correct() ? row.certificate.radius : 0;
    if (!row.abstained()) at(row.certificate.predict).predicted += 1;
  }
  for (ClassSummary& c : classes) {
    const auto images = static_cast<double>(std::max<int64_t>(c.images, 1));
    c.correct /= images;
    c.abstained /= images;
    c.mean_radius /= images;
  }
  return classes;
}

double median_seconds(const std::vector<CertificateRow>& rows) {
  std::vector<double> seconds;
  for (const CertificateRow& row : rows) seconds.push_back(row.seconds);
  std::sort(seconds.begin(), seconds.end());
  const size_t middle = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
}

}  // namespace

double certified_accuracy(const std::vector<CertificateRow>& rows, double r) {
  return static_cast<double>(count_certified(rows, r)) / static_cast<double>(rows.size());
}

bool can_certify(const RunRecord& run, double radius) {
  const CertificateRow* last = nullptr;  // that was asked: rows are mostly alike
  for (const CertificateRow& row : run.rows) {
    if (row.certificate.radius >= radius) return true;
    const int64_t n = row.certificate.counts.n;
    if (row.published && (n == 0 || row.alpha == 0 || row.sigma == 0)) return true;
    if (n == 0) continue;
    if (row.rule == VoteRule::kRadii) {  // larger ones were not asked for
      if (row.radii.back() >= radius) return true;
      continue;
    }
    if (last != nullptr && last->certificate.counts.n == n && last->sigma == row.sigma &&
        last->alpha == row.alpha) {
      continue;
    }
    last = &row;
    const Certificate best = certificate_from_counts({0, n, n, 0}, row.sigma, row.alpha,
                                                     RadiusKind::kOneSided, row.law());
    if (radius_in(run.norm, best.radius, run.values) >= radius) return true;
  }
  return false;
}

std::vector<double> standard_radii(double largest, Norm norm, int most) {
  double step = radius_step(norm);
  while (largest / step >= most) step *= 2;
  std::vector<double> radii;
  for (int i = 0; i * step <= largest; ++i) radii.push_back(i * step);
  return radii;
}

double largest_radius(const std::vector<CertificateRow>& rows) {
  double largest = 0;
  for (const CertificateRow& row : rows) {
    if (row.correct()) largest = std::max(largest, row.certificate.radius);
  }
  return largest;
}

Proportion proportion(int64_t part, int64_t whole) {
  return {static_cast<double>(part) / static_cast<double>(whole),
          binomial_lower_bound(part, whole, kIntervalTail),
          binomial_upper_bound(part, whole, kIntervalTail)};
}

AtRadius accuracy_at(const std::vector<CertificateRow>& rows, double r) {
  const Proportion accuracy = proportion(count_certified(rows, r), std::ssize(rows));
  return {r, accuracy, high_probability(rows, accuracy.value)};
}

Summary summarize(const std::vector<CertificateRow>& rows, Norm norm) {
  const int64_t abstained = count(rows, [](const auto& row) { return row.abstained(); });
  const int64_t wrong =
      count(rows, [](const auto& row) { return !row.abstained() && !row.correct(); });
  Summary summary;
  summary.images = static_cast<int64_t>(rows.size());
  summary.table = tabulate(rows, norm);
  if (std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.estimated(); })) {
    summary.abstained = proportion(abstained, std::ssize(rows));
    summary.wrong_but_certified = proportion(wrong, std::ssize(rows));
  }
  summary.average_certified_radius = average_certified_radius(rows);
  summary.classes = summarize_classes(rows);
  for (const ClassSummary& c : summary.classes) {
    summary.distinct_labels += c.images > 0;
    summary.distinct_predictions += c.predicted > 0;
  }
  summary.median_seconds = median_seconds(rows);
  return summary;
}

std::vector<CurvePoint> accuracy_curve(const std::vector<CertificateRow>& rows) {
  std::vector<CurvePoint> curve = {{0, certified_accuracy(rows, 0)}};
  std::vector<double> radii;
  for (const CertificateRow& row : rows) {
    if (row.correct() && row.certificate.radius > 0) radii.push_back(row.certificate.radius);
  }
  std::sort(radii.begin(), radii.end());
  for (size_t i = 0; i < radii.size(); ++i) {
    if (i > 0 && radii[i] == radii[i - 1]) continue;
    const auto certified = static_cast<double>(radii.size() - i);
    curve.push_back({radii[i], certified / static_cast<double>(rows.size())});
  }
  return curve;
}

}  // namespace fedsmooth
