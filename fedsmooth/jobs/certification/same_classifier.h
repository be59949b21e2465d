// Compares a classifier with the one that a file states. No other code compares the two.
#pragma once

#include <filesystem>

#include "fedsmooth/records/certificate_identity.h"

namespace fedsmooth::jobs {

/// The fields by which classifiers are told apart: model_sha256, sigma, fingerprint and base of an
/// identity, and the noise law. A field without a value is not compared.
struct ClassifierIdentity {
  SubjectIdentity subject;
  const NoiseLaw& law;
};

/// The parts in which two classifiers differ.
struct ClassifierDifference {
  bool model = false;       // the model's SHA-256
  bool sigma = false;       // the noise level
  bool noise = false;       // the law; one that continues the other's tables does not differ
  bool logits = false;      // the fingerprint
  bool arithmetic = false;  // `base`: logits may then differ in their last bits
};
ClassifierDifference compare_classifiers(const ClassifierIdentity& there,
                                         const ClassifierIdentity& here);

/// Throws an Error unless `here` is `there`, the classifier that `file` states, up to the last bits
/// of the logits. Also throws an Error if `here` states a model's SHA-256 and `there` does not.
/// Returns whether the logits differ because another arithmetic computes them.
bool check_same_classifier(const ClassifierIdentity& there, const ClassifierIdentity& here,
                           const std::filesystem::path& file);

/// Throws an Error unless `there`, the SHA-256 that `file` states, equals `here`. `what` names the
/// hashed object in the message.
void check_same_sha256(const std::optional<std::string>& there, const std::string& here,
                       std::string_view what, const std::filesystem::path& file);

}  // namespace fedsmooth::jobs
