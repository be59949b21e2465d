// Cost-sensitive certificates of a table, from the votes of all classes that its rows keep: for
// each image the radius within which g's answer is none of the classes that it is to avoid (see
// smoothing/against.h), and the shares of images that have one.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/smoothing/against.h"

namespace fedsmooth {

/// The classes that g is to avoid on an image. Certificates hold only if this was chosen before the
/// votes were drawn.
struct Avoidance {
  enum class Kind {
    kClasses,       // `classes`, on all images
    kSuperclasses,  // every class of another superclass than the selected class's
    kBeyondTop,     // all but the selected class and the top - 1 likeliest others by the n0 votes
  };
  Kind kind = Kind::kClasses;
  std::vector<int64_t> classes = {};        // ascending
  std::vector<int64_t> superclass_of = {};  // number of the superclass of each class
  int64_t top = 0;
};

struct AvoidingRow {
  int64_t index = 0, label = 0, selected = 0;
  double radius = 0.0;  // 0: nothing is claimed
};

struct ShareAtRadius {
  double radius = 0.0;
  Proportion share;
};

struct AvoidingRows {
  std::vector<AvoidingRow> rows;
  /// Number of images of which shares are taken: all, but with kClasses only those whose label is
  /// not to be avoided. If it is 0, `certified` is empty.
  int64_t images = 0;
  /// At each standard radius, the share of images that are certified at it and right: the label is
  /// not among the avoided classes and, with kBeyondTop, is the selected class.
  std::vector<ShareAtRadius> certified;
};

/// The certificates of a run against the classes that a user gave, see jobs/against.h.
struct AgainstResult {
  std::string name;   // of the run
  std::string claim;  // in words: "g is never bird, cat"
  double alpha = 0;
  AvoidingRows found;
};

/// Certifies the rows of a run against the classes to avoid, at level `alpha` (0: the rows' own),
/// with radii in the run's norm. Throws an Error if the rows do not keep the votes of all classes,
/// or if votes were stopped early (VoteRule::kRadii), because the bounds require a number of votes
/// that does not depend on these votes. VoteRule::kPlan is accepted: its n0 votes set the number.
AvoidingRows radii_against(const RunRecord& run, const Avoidance& avoidance, double alpha = 0);

}  // namespace fedsmooth
