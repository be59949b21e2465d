// Conformal sets from one noisy pass: calibrated once on images that training did not see, then
// answered for any image with one evaluation (smoothing/conformal.h).
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
  /// How many images calibrate; 0: all held-out ones, or every second one of the test set.
  int64_t images = 0;
  std::string out;                // file to write; empty: conformal.json beside the model
  std::vector<std::string> with;  // models that are one classifier with `path`
};

/// On the images that are left, as they are: nobody moved them.
struct SetsOnTestImages {
  int64_t images = 0;
  double coverage = 0.0;   // share whose set holds the label
  double mean_size = 0.0;  // classes in a set
  int64_t empty = 0;       // sets without a class
};

struct Calibrated {
  std::filesystem::path file;
  ConformalCalibration calibration;
  std::optional<SetsOnTestImages> test;  // none: no image was left
};

/// With data.held_out, in the run or among the overrides, the held-out training images calibrate
/// and the test set is what is left. Otherwise images of the test set calibrate, at equal
/// distances, and its others are left. An Error that says how many images are needed if there are
/// too few. The seed is drawn unless the overrides give one.
Calibrated calibrate(const ConformalArguments& arguments, const Overrides& overrides,
                     const Context& context);

struct SetAnswer {
  std::string image;                     // as it was given
  std::vector<int64_t> classes;          // of the set, ascending; may be none
  std::vector<std::string> class_names;  // of all classes
  uint64_t seed = 0;                     // of the noise: it repeats the set
};

/// A set for each image, in their order, from one noisy pass each; `arguments.n` is not used. Sigma
/// and noise are those of the file. Throws an Error if the file is about another model. The seed is
/// drawn unless the overrides give one: who knows the noise can move the image against it.
std::vector<SetAnswer> predict_sets(const PredictArguments& arguments,
                                    const std::filesystem::path& file, const Overrides& overrides,
                                    const Context& context);

}  // namespace fedsmooth::jobs
