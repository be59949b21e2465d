// Conformal sets from one noisy pass (smoothing/conformal.h). A threshold is calibrated once, on
// images that training did not see; then one evaluation gives the set of any image.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/jobs/predict.h"
#include "fedsmooth/records/conformal_file.h"

namespace fedsmooth::jobs {

struct ConformalArguments {
  std::string path;       // run folder or model
  double epsilon = 0.25;  // l2
  double coverage = 0.9;
  /// Number of calibration images; 0: all held-out images, or half of the test set.
  int64_t images = 0;
  /// File to write; empty: conformal.json in a run folder, NAME.conformal.json beside a model.
  std::string out;
  std::vector<std::string> with;  // further models, as one classifier with `path`
};

struct Calibrated {
  std::filesystem::path file;
  ConformalCalibration calibration;
};

/// Calibrates a threshold, measures it on the remaining images and writes it to a file. With
/// data.held_out, in the run or the overrides, the held-out training images calibrate and the test
/// set remains; otherwise test images that are drawn at random by the seed calibrate, and the other
/// test images remain. Warns if the sets cover implausibly few of the remaining images. The seed is
/// drawn unless the overrides give one. Throws an Error if the file exists, if a run may have
/// trained on the held-out images, or if there are too few images; the message then says how many
/// are needed.
Calibrated calibrate(const ConformalArguments& arguments, const Overrides& overrides,
                     const Context& context);

struct SetAnswer {
  std::string image;                     // as it was given
  std::string label;                     // its right class, if it is of the test set; else empty
  std::vector<int64_t> classes;          // in the set, ascending; may be empty
  std::vector<std::string> class_names;  // of all classes
  uint64_t seed = 0;                     // of the noise; with it the set can be reproduced
};

/// Returns the set of each image, in their order, from one noisy pass each; `arguments.n` is not
/// used. Sigma and noise are those of `file`, which calibrate() wrote. Throws an Error if the file
/// is about another model or if the overrides give another sigma or noise. The seed is drawn unless
/// the overrides give one: an attacker who knows the noise can fit an image to it.
std::vector<SetAnswer> predict_sets(const PredictArguments& arguments,
                                    const std::filesystem::path& file, const Overrides& overrides,
                                    const Context& context);

}  // namespace fedsmooth::jobs
