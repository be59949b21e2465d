// Whether a classifier is the one that a file states. The only place that compares the two.
#pragma once

#include <filesystem>

#include "fedsmooth/records/certificate_identity.h"

namespace fedsmooth::jobs {

/// What tells classifiers apart: model_sha256, sigma, fingerprint and base of an identity, and the
/// noise law. A field that is left out is not compared.
struct ClassifierIdentity {
  SubjectIdentity subject;
  const NoiseLaw& law;
};

struct ClassifierDifference {
  bool model = false;       // the model's SHA-256
  bool sigma = false;       // the noise level
  bool noise = false;       // the law, or the one that continues its tables
  bool logits = false;      // the fingerprint
  bool arithmetic = false;  // `base`: logits may then differ in their last bits
};
ClassifierDifference compare_classifiers(const ClassifierIdentity& there,
                                         const ClassifierIdentity& here);

/// Throws an Error unless `here` is the classifier that `file` states, `there`, up to the last bits
/// of its logits, or if the file does not say which model it is about although `here` does. Returns
/// whether the logits differ because another arithmetic computes them.
bool check_same_classifier(const ClassifierIdentity& there, const ClassifierIdentity& here,
                           const std::filesystem::path& file);

/// Throws an Error unless `there`, the SHA-256 that a file states of its `what`, is `here`.
void check_same_sha256(const std::optional<std::string>& there, const std::string& here,
                       std::string_view what, const std::filesystem::path& file);

}  // namespace fedsmooth::jobs
