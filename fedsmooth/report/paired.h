// Two tables on the images that both have. As the images are the same, differences are paired:
// those on which both agree say nothing and widen nothing.
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
  bool exact = false;  // by Clopper and Pearson, as few images differ; such an interval contains 0
};

struct PairedAtRadius {
  double radius = 0.0;
  int64_t both = 0, only_a = 0, only_b = 0;  // images that are correct and certified at the radius
  double a = 0.0, b = 0.0;                   // certified accuracy
  Difference difference;
};

struct PairedComparison {
  Norm norm = Norm::kL2;
  int64_t images = 0;                 // that both have
  std::vector<PairedAtRadius> table;  // at the standard radii up to the larger of the largest
  std::vector<PairedAtRadius> curve;  // at equal distances over the same range, for a figure
  double acr_a = 0.0, acr_b = 0.0;    // average certified radii
  std::optional<Difference> acr;      // none if too few images differ for an interval
};

/// What is compared. The runs have the images that both had, see keep_common_images().
struct ComparedRuns {
  RunRecord a, b;
  int64_t images_a = 0, images_b = 0;  // before that
  PairedComparison paired;
};

/// A sentence about it if the tables state different data; empty otherwise.
std::string warn_of_other_data(const ComparedRuns& runs);

/// Images on which the outcomes must differ for an interval by Student's t; with fewer it may miss
/// almost always.
inline constexpr int64_t kFewImages = 10;

/// Keeps, of each run, the images that both have, in the same order. An Error if there are none, if
/// a label differs (the data or their order are others) or images are of another size.
void keep_common_images(RunRecord& a, RunRecord& b);

/// Compares two runs with the same images in the same order.
PairedComparison compare_paired(const RunRecord& a, const RunRecord& b);

/// The interval of the difference between shares of N images, of which `only_a` and `only_b`
/// differ.
Difference paired_difference(int64_t only_a, int64_t only_b, int64_t images);

}  // namespace fedsmooth
