// What a set of certificates says, with Cohen's semantics: a radius counts if it is at least r, and
// abstentions stay in the denominator. Every function refuses an empty set.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Share of images that are correct and certified at radius at least `r`.
double certified_accuracy(const std::vector<CertificateRow>& rows, double r);

/// Whether images like the run's could be certified at `radius`, in its norm, if all votes went to
/// one class. Beyond it an accuracy of 0 says nothing about the classifier. Of tables that do not
/// state sigma, alpha and n it is not known, and true.
bool can_certify(const RunRecord& run, double radius);

/// The radii of a table: 0, 0.25, 0.5, ... (in l_inf 0, 1/255, ...) up to `largest`, with a step
/// that doubles until at most `most` are left.
std::vector<double> standard_radii(double largest, Norm norm, int most = 20);

/// The largest radius of a correct answer; 0 if there is none.
double largest_radius(const std::vector<CertificateRow>& rows);

struct Proportion {
  double value = 0.0;
  double low = 0.0;  // exact (Clopper-Pearson) 95% interval over the choice of test images
  double high = 0.0;
};
/// `part` of `whole` images.
Proportion proportion(int64_t part, int64_t whole);

struct AtRadius {
  double radius = 0.0;
  Proportion accuracy;
  /// Holds with probability 1 - rho although each certificate fails with probability alpha
  /// (Bernstein over independent images, rho = 0.001; Cohen's analyze.py leaves out a factor of 2
  /// under the root, without which it does not hold); never below 0. Not known without alpha.
  std::optional<double> high_probability;
};
AtRadius accuracy_at(const std::vector<CertificateRow>& rows, double r);

struct ClassSummary {
  int64_t images = 0;
  int64_t predicted = 0;     // how often the class was the answer, whatever the label
  double correct = 0.0;      // share correct at radius 0
  double abstained = 0.0;    // share; not known if images were left out
  double mean_radius = 0.0;  // of the correct ones, over all images of the class
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
  double median_seconds = 0.0;          // per certificate
};

/// `norm` is that of the radii.
Summary summarize(const std::vector<CertificateRow>& rows, Norm norm = Norm::kL2);

/// The step curve of certified accuracy: (radius, accuracy just up to and including it), from 0.
struct CurvePoint {
  double radius = 0.0;
  double accuracy = 0.0;
};
std::vector<CurvePoint> accuracy_curve(const std::vector<CertificateRow>& rows);

}  // namespace fedsmooth
