#include "fedsmooth/report/against.h"

#include <algorithm>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

void check_rows(const RunRecord& run) {
  if (!run.certified()) throw Error("{}: has no certificates yet", run.name);
  for (const CertificateRow& row : run.rows) {
    if (row.published) throw Error("{}: is a published table, without votes", run.name);
    if (row.rule == VoteRule::kRadii) {
      throw Error(
          "{}: has votes that were stopped early (--radii); radii against classes need a number of "
          "votes that was fixed before",
          run.name);
    }
    if (!knows_all_votes(row.certificate.counts)) {
      throw Error(
          "{}: image {} has the votes of two classes only, as earlier versions kept them; certify "
          "again",
          run.name, row.index);
    }
  }
}

int64_t superclass_of(const Avoidance& avoidance, int64_t label, const RunRecord& run) {
  if (label < 0 || label >= std::ssize(avoidance.superclass_of)) {
    throw Error("{}: class {} is in no superclass", run.name, label);
  }
  return avoidance.superclass_of[label];
}

ClassSet omega_of(const Avoidance& a, const Counts& counts, const RunRecord& run) {
  if (a.kind == Avoidance::Kind::kClasses) return {a.classes};
  if (a.kind == Avoidance::Kind::kBeyondTop) {
    return beyond_top(counts, a.top, run.identity.classes.value_or(std::ssize(run.class_names)));
  }
  ClassSet omega{{}, true};
  const int64_t own = superclass_of(a, counts.selected, run);
  for (int64_t c = 0; c < std::ssize(a.superclass_of); ++c) {
    if (a.superclass_of[c] == own) omega.listed.push_back(c);
  }
  return omega;
}

double radius_of(const CertificateRow& row, const Avoidance& a, double alpha,
                 const RunRecord& run) {
  const Counts& counts = row.certificate.counts;
  if (counts.n == 0) return 0;
  const ClassSet omega = omega_of(a, counts, run);
  // That no class beyond the top k is the answer does not say that the selected one is among them.
  const double radius = a.kind == Avoidance::Kind::kBeyondTop
                            ? radius_above(counts, omega, row.sigma, alpha, row.law())
                            : radius_against(counts, omega, run.identity.classes.value_or(0),
                                             row.sigma, alpha, row.law());
  return run.norm == row.law().norm ? radius : radius_in(run.norm, radius, run.values);
}

bool is_right(const AvoidingRow& row, const Avoidance& a, const RunRecord& run) {
  if (a.kind == Avoidance::Kind::kBeyondTop) return row.label == row.selected;
  if (a.kind == Avoidance::Kind::kClasses) return true;  // images of these classes are left out
  return superclass_of(a, row.label, run) == superclass_of(a, row.selected, run);
}

}  // namespace

AvoidingRows radii_against(const RunRecord& run, const Avoidance& a, double alpha) {
  check_rows(run);
  AvoidingRows found;
  std::vector<double> radii;  // of images that are right
  for (const CertificateRow& row : run.rows) {
    const Counts& counts = row.certificate.counts;
    found.rows.push_back({row.index, row.label, counts.selected,
                          radius_of(row, a, alpha > 0 ? alpha : row.alpha, run)});
    if (a.kind == Avoidance::Kind::kClasses && ClassSet{a.classes}.contains(row.label)) continue;
    ++found.images;
    const AvoidingRow& made = found.rows.back();
    if (made.radius > 0 && is_right(made, a, run)) radii.push_back(made.radius);
  }
  if (found.images == 0) return found;
  const double largest = radii.empty() ? 0 : *std::max_element(radii.begin(), radii.end());
  for (const double r : standard_radii(largest, run.norm)) {
    const auto reach = std::count_if(radii.begin(), radii.end(), [&](double x) { return x >= r; });
    found.certified.push_back({r, proportion(reach, found.images)});
  }
  return found;
}

}  // namespace fedsmooth
