// A run of several groups as one classifier for certify, predict and verify: the majority of the
// groups' networks, each read from its group's folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/jobs/certification/model_under_test.h"

namespace fedsmooth::jobs {

/// Loads the groups of a run; parameters are those of load_model_under_test(). Throws an Error
/// unless all their models are those that the run trained.
ModelUnderTest load_groups(const std::filesystem::path& run, const Overrides& overrides,
                           const Dataset* data, const Shape& input, const std::string& device);

/// Sets the identity's fields about several groups from the options, and its seed: the given one,
/// or the one that was drawn when training ended.
void identify_groups(const ModelUnderTest& subject, CertificateIdentity& identity);

}  // namespace fedsmooth::jobs
