// MODEL --with MODEL...: several models that certify, predict and verify treat as one classifier,
// the argmax of the mean of their logits. A run of several groups is the majority of its networks.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fedsmooth/engine/ensembles.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/certification/model_under_test.h"

namespace fedsmooth::jobs {

/// The arguments RUN_OR_MODEL and --with.
struct Subject {
  std::string path;
  std::vector<std::string> with;  // empty: the model alone
};

/// Loads one model by load_model_under_test(), a run of several groups by load_groups(), or several
/// models as one. These have the experiment and the sigma of `subject.path`, are evaluated in
/// ascending order of their files' SHA-256, and their sha256 is digest_members(). Throws an Error
/// that names file and value if a member occurs twice, or differs in the shape of its images, its
/// number of classes, their names or the sigma that it was trained for.
ModelUnderTest load_under_test(const Subject& subject, const Overrides& overrides,
                               const Dataset* data, const Shape& input, const std::string& device);

/// Several models as one. `subject` lacks f and sha256, which the caller sets; it has the rest of
/// the first model given, but for its network, and the gradients of the mean of the logits.
struct JoinedModels {
  ModelUnderTest subject;
  std::vector<EnsembleMember> members;  // in ascending order of SHA-256, as all lists here
  std::vector<std::string> sha256s;
};
JoinedModels join(std::vector<ModelUnderTest> loaded);

/// Throws an Error if two models differ in their number of classes, the names of these or the sigma
/// that they were trained for.
void check_alike(const ModelUnderTest& a, const ModelUnderTest& b);

/// Throws an Error unless a table about several models has a place of its own: --out is required,
/// and must not be a run's certificates.tsv, which is for the model that the run trained.
void check_place_of_table(const CertifyArguments& arguments);

/// Returns the paths of members for the JSON beside a table, in the order of the identity's list.
nlohmann::json describe_members(const ModelUnderTest& subject);

/// Returns the paths of the members that the JSON beside a table states. Throws an Error that names
/// the first missing file.
Subject stated_members(const std::filesystem::path& table, const nlohmann::json& sidecar);

/// Throws an Error unless the loaded models are those that the table is about. The message names a
/// model that is not a member of the table, or the number of members.
void check_is_about(const SubjectIdentity& identity, const ModelUnderTest& subject,
                    const std::filesystem::path& table);

}  // namespace fedsmooth::jobs
