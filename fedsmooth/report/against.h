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

/// What g is to avoid on an image. To hold, it was chosen before the votes were drawn.
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
  /// The images of which shares are taken: with kClasses those whose label is not to be avoided. If
  /// there are none, `certified` is empty.
  int64_t images = 0;
  /// At the standard radii: the share whose radius is at least this and that is right, which means
  /// that the label is not among the classes that are avoided, and for kBeyondTop that it is the
  /// selected class.
  std::vector<ShareAtRadius> certified;
};

/// A run held against the classes that a user gave, see jobs/against.h.
struct AgainstResult {
  std::string name;   // of the run
  std::string claim;  // in words: "g is never bird, cat"
  double alpha = 0;
  AvoidingRows found;
};

/// At level `alpha`, or at the rows' own if it is 0, with radii in the run's norm. An Error if the
/// rows do not keep the votes of all classes, or if votes were stopped early (VoteRule::kRadii):
/// these bounds hold for a number of votes that does not depend on them. Under VoteRule::kPlan it
/// does not: the n0 votes set it.
AvoidingRows radii_against(const RunRecord& run, const Avoidance& avoidance, double alpha = 0);

}  // namespace fedsmooth
