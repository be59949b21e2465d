// Compares two tables on the images that both have. Differences are paired: images on which both
// agree neither change a difference nor widen its interval.
//
// A difference of certified accuracy is (a - b) / N, where a images are certified by A alone and b
// by B alone, with McNemar's variance (a + b - (a - b)^2 / N) / (N (N - 1)).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// A - B with a 95% interval over the choice of test images.
struct Difference {
  double value = 0.0;
  double low = 0.0, high = 0.0;
  bool exact = false;  // by Clopper and Pearson, where few images differ; then it contains 0
};

struct PairedAtRadius {
  double radius = 0.0;
  int64_t both = 0, only_a = 0, only_b = 0;  // images that are correct and certified at the radius
  double a = 0.0, b = 0.0;                   // certified accuracy
  Difference difference;
};

struct PairedComparison {
  Norm norm = Norm::kL2;
  int64_t images = 0;                 // number of images that both have
  std::vector<PairedAtRadius> table;  // at the standard radii up to the largest of either run
  std::vector<PairedAtRadius> curve;  // at equal distances over the same range, for a figure
  double acr_a = 0.0, acr_b = 0.0;    // average certified radii
  std::optional<Difference> acr;      // nothing if too few images differ for an interval
};

/// Two runs of several groups against the same numbers of malicious clients.
struct PairedThreats {
  std::vector<int64_t> malicious;               // ascending; those that both runs support
  std::vector<double> radii;                    // ascending, in the runs' norm
  std::vector<std::vector<PairedAtRadius>> at;  // for each number of malicious clients, each radius
};

/// Two runs that are compared, each with the common images only; see keep_common_images().
struct ComparedRuns {
  RunRecord a, b;
  int64_t images_a = 0, images_b = 0;  // numbers of all images, common or not
  PairedComparison paired;
  std::optional<PairedThreats> threats;  // if both are runs of several groups
};

/// Returns a warning if the tables state different data; empty otherwise.
std::string warn_of_other_data(const ComparedRuns& runs);

/// The fewest images with different outcomes for which the interval is by Student's t. With fewer,
/// that interval may almost always miss the truth.
inline constexpr int64_t kFewImages = 10;

/// Keeps the images that both runs have, in the same order. Throws an Error if there are none, if a
/// label differs (which means other data or another order) or if the images have different sizes.
void keep_common_images(RunRecord& a, RunRecord& b);

/// Compares the rows of two runs with the same images in the same order, at one radius.
PairedAtRadius compare_at(const std::vector<CertificateRow>& a,
                          const std::vector<CertificateRow>& b, double radius);

/// Compares two runs with the same images in the same order.
PairedComparison compare_paired(const RunRecord& a, const RunRecord& b);

/// Returns the difference (only_a - only_b) / images with its interval.
Difference paired_difference(int64_t only_a, int64_t only_b, int64_t images);

}  // namespace fedsmooth
