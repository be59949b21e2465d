// A run of several groups as what certify, predict and verify work on: the majority of the groups'
// networks, each read from its group's folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/jobs/certification/model_under_test.h"

namespace fedsmooth::jobs {

/// Loads the groups of a run. Throws an Error unless all their models are those that it trained.
ModelUnderTest load_groups(const std::filesystem::path& run, const Overrides& overrides,
                           const Dataset* data, const Shape& input, const std::string& device);

/// Takes the identity's fields about several groups from the options, and the seed of the
/// certificates: the given one, or the one that training drew when it was done.
void identify_groups(const ModelUnderTest& subject, CertificateIdentity& identity);

}  // namespace fedsmooth::jobs
