// RUN_OR_MODEL: what certify, predict and attack work on.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/data/dataset.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/records/certificate_identity.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth::jobs {

/// A model that is evaluated with others as one classifier.
struct MemberFile {
  std::filesystem::path path;
  std::string sha256;
};

struct ModelUnderTest {
  std::filesystem::path model_path;
  Experiment experiment;  // the run's, or the defaults, with the overrides applied
  BaseClassifier f;
  /// The same network with gradients, for `attack`: loads it; each call of the result makes one for
  /// a thread.
  std::function<std::function<DifferentiableClassifier()>()> load_gradients;
  double sigma = 0.0;
  std::vector<std::string> class_names;
  std::string sha256;                  // of the model file, or digest_members() of several
  std::string fingerprint;             // of f, see Sampler::check()
  std::shared_ptr<const Model> model;  // null: a TorchScript module, or several models as one
  /// With several models as one (ensemble_under_test.h), in ascending order of SHA-256; else empty.
  std::vector<MemberFile> members;
};

/// The experiment of a run folder (or the defaults for a model file), overridden.
Experiment experiment_of_model(const std::filesystem::path& path, const Overrides& overrides);

/// Where the test images of a run or model are. Throws an Error for a model file unless the
/// overrides name its data set, which the file does not.
DataOptions data_of_model(const std::filesystem::path& path, const Overrides& overrides);

/// The seed of votes, if the overrides give one: `seed` or `certify.seed`, whichever comes last.
std::optional<uint64_t> given_seed(const Overrides& overrides);

/// Loads the model and settles sigma: certify.sigma if given, else what the model was trained for.
/// `data` may be null if images come from elsewhere; `input` is then their shape. f is for
/// `device`, and for votes under certify.noise. The fingerprint is left to who makes a sampler.
ModelUnderTest load_model_under_test(const std::filesystem::path& path, const Overrides& overrides,
                                     const Dataset* data, const Shape& input,
                                     const std::string& device);

Shape image_shape(const Dataset& data);

/// Every Nth test image, up to the limit.
std::vector<int64_t> choose_images(int64_t size, const CertificationOptions& options);

/// The part of a table's identity that says which classifier and which images it is about.
/// `data_sha256` is digest(data). The seed is certify.seed, or the run's.
SubjectIdentity identify(const ModelUnderTest& subject, const Dataset& data,
                         const std::string& data_sha256);

/// Where a table of `path` goes by default: "certificates" is certificates.tsv in a run folder,
/// NAME.certificates.tsv beside NAME.safetensors.
std::filesystem::path table_path(const std::filesystem::path& path, const std::string& table);

}  // namespace fedsmooth::jobs
