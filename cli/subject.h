// RUN_OR_MODEL: what certify and predict work on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/options.h"
#include "fedsmooth/data/dataset.h"
#include "fedsmooth/engine/base_classifier.h"

namespace fedsmooth::cli {

struct Subject {
  std::filesystem::path model_path;
  Experiment experiment;  // the run's, or the defaults, with the overrides applied
  BaseClassifier f;
  double sigma = 0.0;
  std::vector<std::string> class_names;
  std::string sha256;       // of the model file
  std::string fingerprint;  // of f, see check_is_function()
};

/// The experiment of a run folder (or the defaults for a model file), overridden.
Experiment subject_experiment(const std::filesystem::path& path, const Overrides& overrides);

/// Loads the model and settles sigma: certify.sigma if given, else what the model was trained for.
/// `data` may be null if images come from elsewhere; `input` is then their shape.
Subject load_subject(const std::filesystem::path& path, const Overrides& overrides,
                     const Dataset* data, const Shape& input);

Shape image_shape(const Dataset& data);

/// Where certificates of `path` go by default.
std::filesystem::path certificates_path(const std::filesystem::path& path);

}  // namespace fedsmooth::cli
