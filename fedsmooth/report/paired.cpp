#include "fedsmooth/report/paired.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <unordered_map>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr double kTail = 0.025;  // on either side of a 95% interval
constexpr int kCurvePoints = 300;
constexpr double kNever = -1;  // the radius at which a wrong answer is certified

double student_quantile(int64_t images) {
  const boost::math::students_t t(static_cast<double>(images - 1));
  return quantile(complement(t, kTail));
}

// The mean difference is at most the share of images on which A is better, and at least minus the
// share on which B is. Each of these bounds holds at 97.5%, so that both hold at 95%.
Difference exact_difference(int64_t only_a, int64_t only_b, int64_t images) {
  return {static_cast<double>(only_a - only_b) / static_cast<double>(images),
          -binomial_upper_bound(only_b, images, kTail), binomial_upper_bound(only_a, images, kTail),
          true};
}

// For each image, the radius up to which it is certified.
std::vector<double> certified_radii(const std::vector<CertificateRow>& rows) {
  std::vector<double> radii;
  for (const CertificateRow& row : rows) {
    radii.push_back(row.correct() ? row.certificate.radius : kNever);
  }
  return radii;
}

PairedAtRadius at_radius(const std::vector<double>& a, const std::vector<double>& b, double r) {
  PairedAtRadius at{r};
  for (size_t i = 0; i < a.size(); ++i) {
    at.both += a[i] >= r && b[i] >= r;
    at.only_a += a[i] >= r && b[i] < r;
    at.only_b += a[i] < r && b[i] >= r;
  }
  const auto images = static_cast<double>(a.size());
  at.a = static_cast<double>(at.both + at.only_a) / images;
  at.b = static_cast<double>(at.both + at.only_b) / images;
  at.difference = paired_difference(at.only_a, at.only_b, std::ssize(a));
  return at;
}

std::optional<Difference> mean_difference(const std::vector<double>& a,
                                          const std::vector<double>& b) {
  const auto images = static_cast<double>(a.size());
  double sum = 0;
  int64_t differ = 0;
  const auto difference = [&](size_t i) { return std::max(a[i], 0.0) - std::max(b[i], 0.0); };
  for (size_t i = 0; i < a.size(); ++i) {
    sum += difference(i);
    differ += difference(i) != 0;
  }
  if (differ < kFewImages) return std::nullopt;
  const double mean = sum / images;
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += std::pow(difference(i) - mean, 2);
  const double half = student_quantile(std::ssize(a)) * std::sqrt(squares / (images - 1) / images);
  return Difference{mean, mean - half, mean + half};
}

}  // namespace

void keep_common_images(RunRecord& a, RunRecord& b) {
  if (a.values != 0 && b.values != 0 && a.values != b.values) {
    throw Error("compare: images of {} values in A and of {} in B are not the same images",
                a.values, b.values);
  }
  std::unordered_map<int64_t, const CertificateRow*> of_b;
  for (const CertificateRow& row : b.rows) of_b[row.index] = &row;
  std::vector<CertificateRow> rows_a, rows_b;
  for (const CertificateRow& row : a.rows) {
    const auto found = of_b.find(row.index);
    if (found == of_b.end()) continue;
    if (found->second->label != row.label) {
      throw Error("compare: image {} has label {} in A and {} in B; other data, or another order",
                  row.index, row.label, found->second->label);
    }
    rows_a.push_back(row);
    rows_b.push_back(*found->second);
  }
  if (rows_a.empty()) {
    throw Error("compare: {} and {} have no image in common", shorten(a.name, 60),
                shorten(b.name, 60));
  }
  a.rows = std::move(rows_a);
  b.rows = std::move(rows_b);
}

std::string warn_of_other_data(const ComparedRuns& runs) {
  const auto &a = runs.a.identity.data_sha256, &b = runs.b.identity.data_sha256;
  if (!a || !b || *a == *b) return {};
  return fmt::format(
      "The tables are about different images: SHA-256 {}... and {}..., though their labels agree.",
      a->substr(0, 12), b->substr(0, 12));
}

PairedAtRadius compare_at(const std::vector<CertificateRow>& a,
                          const std::vector<CertificateRow>& b, double radius) {
  return at_radius(certified_radii(a), certified_radii(b), radius);
}

PairedComparison compare_paired(const RunRecord& a, const RunRecord& b) {
  check(!a.rows.empty() && a.rows.size() == b.rows.size(), "compare_paired: {} and {} rows",
        a.rows.size(), b.rows.size());
  const std::vector<double> radii_a = certified_radii(a.rows), radii_b = certified_radii(b.rows);
  PairedComparison found{a.norm, std::ssize(a.rows)};
  const double largest = std::max(largest_radius(a.rows), largest_radius(b.rows));
  for (const double radius : standard_radii(largest, a.norm)) {
    found.table.push_back(at_radius(radii_a, radii_b, radius));
  }
  for (int i = 0; i <= kCurvePoints; ++i) {
    found.curve.push_back(at_radius(radii_a, radii_b, largest * i / kCurvePoints));
  }
  found.acr_a = summarize(a.rows).average_certified_radius;
  found.acr_b = summarize(b.rows).average_certified_radius;
  found.acr = mean_difference(radii_a, radii_b);
  return found;
}

Difference paired_difference(int64_t only_a, int64_t only_b, int64_t images) {
  const int64_t differ = only_a + only_b;
  // Where all images differ in the same way there is no variance to go by.
  const bool all_alike = only_a == images || only_b == images;
  if (differ < kFewImages || all_alike) return exact_difference(only_a, only_b, images);
  const auto n = static_cast<double>(images), gap = static_cast<double>(only_a - only_b);
  const double variance = (static_cast<double>(differ) - gap * gap / n) / (n * (n - 1));
  const double half = student_quantile(images) * std::sqrt(variance);
  return {gap / n, std::max(-1.0, gap / n - half), std::min(1.0, gap / n + half)};
}

}  // namespace fedsmooth
