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

/// RUN_OR_MODEL, and those of --with.
struct Subject {
  std::string path;
  std::vector<std::string> with;  // empty: the model alone
};

/// Loads a model as load_model_under_test() does, or several as one. The experiment and sigma are
/// those of `subject.path`. Members are evaluated in ascending order of their files' SHA-256,
/// whatever order they are given in, and sha256 is digest_members() of those. Throws an Error that
/// names the file and the value where a member differs in the shape of its images, its classes,
/// their names or the sigma that it was trained for, or is there twice. A run of several groups is
/// loaded by load_groups().
ModelUnderTest load_under_test(const Subject& subject, const Overrides& overrides,
                               const Dataset* data, const Shape& input, const std::string& device);

/// Several models, of which `subject` states all but f and sha256: the rest is that of the first
/// one given, without a model of its own, and its gradients are those of the mean of the logits.
struct JoinedModels {
  ModelUnderTest subject;
  std::vector<EnsembleMember> members;  // in ascending order of SHA-256, as all lists here
  std::vector<std::string> sha256s;
};
JoinedModels join(std::vector<ModelUnderTest> loaded);

/// Throws an Error where two models differ in their classes, the names of these or the sigma that
/// they were trained for.
void check_alike(const ModelUnderTest& a, const ModelUnderTest& b);

/// Throws an Error unless a table about several models has a place of its own: --out is required,
/// and a run's certificates.tsv is for the model that it trained.
void check_place_of_table(const CertifyArguments& arguments);

/// The paths of members, for the JSON beside a table, in the order of the identity's list.
nlohmann::json describe_members(const ModelUnderTest& subject);

/// Where the JSON beside a table says that its members are. Throws an Error that names the first
/// one that is not there.
Subject stated_members(const std::filesystem::path& table, const nlohmann::json& sidecar);

/// Throws an Error unless the loaded models are those that the table is about: it names a model
/// that is not among the table's members, or how many there should be.
void check_is_about(const SubjectIdentity& identity, const ModelUnderTest& subject,
                    const std::filesystem::path& table);

}  // namespace fedsmooth::jobs
