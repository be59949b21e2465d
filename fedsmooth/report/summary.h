// Statistics of a set of certificates, with Cohen's semantics: a radius counts if it is at least r,
// and abstentions stay in the denominator. Every function refuses an empty set.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Returns the share of images that are correct and certified at a radius of at least `r`.
double certified_accuracy(const std::vector<CertificateRow>& rows, double r);

/// Returns whether an image of the run could be certified at `radius`, in the run's norm, if all
/// votes were for one class. Where it could not, an accuracy of 0 says nothing about the
/// classifier. Returns true for tables that do not state sigma, alpha and n.
bool can_certify(const RunRecord& run, double radius);

/// Returns the radii of a table: 0, 0.25, 0.5, ... (in l_inf 0, 1/255, ...) up to `largest`. The
/// step is doubled until there are at most `most`.
std::vector<double> standard_radii(double largest, Norm norm, int most = 20);

/// Returns the largest radius of a correct answer; 0 if there is none.
double largest_radius(const std::vector<CertificateRow>& rows);

struct Proportion {
  double value = 0.0;
  double low = 0.0;  // exact (Clopper-Pearson) 95% interval over the choice of test images
  double high = 0.0;
};
/// Returns the share `part` / `whole` of images with its interval.
Proportion proportion(int64_t part, int64_t whole);

struct AtRadius {
  double radius = 0.0;
  Proportion accuracy;
  /// Lower bound on the accuracy, never below 0, that holds with probability 1 - rho although each
  /// certificate fails with probability alpha (Bernstein over independent images, rho = 0.001;
  /// Cohen's analyze.py leaves out a factor of 2 under the root, without which it does not hold).
  /// Not known without alpha.
  std::optional<double> high_probability;
};
AtRadius accuracy_at(const std::vector<CertificateRow>& rows, double r);

struct ClassSummary {
  int64_t images = 0;
  int64_t predicted = 0;     // number of answers with this class, for any label
  double correct = 0.0;      // share correct at radius 0
  double abstained = 0.0;    // share of abstentions; not known if images were left out
  double mean_radius = 0.0;  // sum over correct answers, divided by all images of the class
};

struct Summary {
  int64_t images = 0;
  std::vector<AtRadius> table;  // at the standard radii up to the largest
  // Not known if images were left out (--only-correct):
  std::optional<Proportion> abstained;
  std::optional<Proportion>
      wrong_but_certified;              // predicted, certified at radius >= 0, not the label
  double average_certified_radius = 0;  // ACR: mean of correct * radius over all rows
  int64_t distinct_labels = 0;          // classes that occur as labels
  int64_t distinct_predictions = 0;     // classes predicted at least once; 1: a constant classifier
  std::vector<ClassSummary> classes;    // by class number, up to the largest label or prediction
  double median_seconds = 0.0;          // median time per certificate
};

/// Summarises rows whose radii are in `norm`.
Summary summarize(const std::vector<CertificateRow>& rows, Norm norm = Norm::kL2);

/// A step of the curve of certified accuracy: the accuracy up to and including `radius`.
struct CurvePoint {
  double radius = 0.0;
  double accuracy = 0.0;
};
std::vector<CurvePoint> accuracy_curve(const std::vector<CertificateRow>& rows);

}  // namespace fedsmooth
