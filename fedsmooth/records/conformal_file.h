// What a calibration of conformal sets leaves: one threshold, with everything that it holds for, as
// a small JSON file.
#pragma once

#include <filesystem>

#include "fedsmooth/records/certificate_identity.h"

namespace fedsmooth {

struct ConformalCalibration {
  /// The model, sigma, seed and arithmetic, and the calibration images: `data` and `images`.
  SubjectIdentity subject;
  const NoiseLaw* noise = nullptr;
  double epsilon = 0.0;   // l2
  double coverage = 0.0;  // at least, whatever moves the image by at most epsilon
  double quantile = 0.0;  // a class whose -log softmax is at most this is in the set
};

void write_conformal(const std::filesystem::path& file, const ConformalCalibration& calibration);

/// An Error, in one line, for a file that is not one of ours, or whose calibration images are too
/// few for its coverage.
ConformalCalibration read_conformal(const std::filesystem::path& file);
ConformalCalibration parse_conformal(std::string_view text, const std::string& name);

}  // namespace fedsmooth
