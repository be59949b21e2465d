// The result of calibrating conformal sets: one threshold, with the model, noise and images for
// which it holds, as a small JSON file.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "fedsmooth/records/certificate_identity.h"

namespace fedsmooth {

/// A measurement of the sets of images that did not calibrate, without an attack.
struct SetsOnTestImages {
  int64_t images = 0;
  double coverage = 0.0;   // share of images whose set has the label
  double mean_size = 0.0;  // mean number of classes in a set
  int64_t empty = 0;       // sets without a class
};

struct ConformalCalibration {
  /// Model, sigma, seed and arithmetic; `data` and `images` state the calibration images.
  SubjectIdentity subject;
  const NoiseLaw* noise = nullptr;
  double epsilon = 0.0;   // l2 norm of the changes that the coverage allows
  double coverage = 0.0;  // least probability that the set contains the true class
  double quantile = 0.0;  // a class is in the set if its -log softmax is at most this
  std::optional<SetsOnTestImages> test = {};  // none: no image was left, or an earlier version
};

/// Writes a measurement as JSON, with the members of SetsOnTestImages.
nlohmann::json to_json(const SetsOnTestImages& sets);

void write_conformal(const std::filesystem::path& file, const ConformalCalibration& calibration);

/// Read a calibration from a file, or from its text, where `name` is the file's name in messages.
/// Throw an Error if write_conformal() did not write the file, a required field is missing, or the
/// calibration images are too few for the coverage.
ConformalCalibration read_conformal(const std::filesystem::path& file);
ConformalCalibration parse_conformal(std::string_view text, const std::string& name);

}  // namespace fedsmooth
