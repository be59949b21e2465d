// Loads the argument RUN_OR_MODEL of certify, predict and attack: a run folder or a model file, as
// a base classifier with its experiment and sigma.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/data/dataset.h"
#include "fedsmooth/jobs/certification/same_classifier.h"
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
  Experiment experiment;  // the run's, or the defaults for a model file; overrides are applied
  BaseClassifier f;
  /// Loads the network with gradients, for `attack`. Each call of the result makes an evaluator for
  /// one thread. For several models or groups it evaluates the mean of their logits.
  std::function<std::function<DifferentiableClassifier()>()> load_gradients;
  double sigma = 0.0;
  std::vector<std::string> class_names;
  std::string sha256;                  // of the model file, or digest_members() of several
  std::string fingerprint;             // of f, see Sampler::check()
  std::shared_ptr<const Model> model;  // null: a TorchScript module, or several models as one
  /// The files of several models as one, or of several groups, in ascending order of SHA-256; empty
  /// for one model.
  std::vector<MemberFile> members;
};

/// Returns the experiment of a run folder, or the defaults for a model file, with the overrides
/// applied. Throws an Error if `path` does not exist or is a run that is not done.
Experiment experiment_of_model(const std::filesystem::path& path, const Overrides& overrides);

/// Returns the data options of a run or model. Throws an Error for a model file unless the
/// overrides name its data set, because the file does not.
DataOptions data_of_model(const std::filesystem::path& path, const Overrides& overrides);

/// Returns the seed of votes that the overrides give by `seed` or `certify.seed`, the later one if
/// both; none if there is neither.
std::optional<uint64_t> given_seed(const Overrides& overrides);

/// Loads a model and chooses sigma: certify.sigma if given, else the one that it was trained for.
/// `input` is the shape of the images; `data` may be null if they are not from a data set. f is for
/// `device`, and for votes under certify.noise. The fingerprint stays empty: Sampler::check()
/// returns it. Throws an Error for a run of several groups (load_groups() loads one), a model that
/// the run did not train, or one for other images or classes.
ModelUnderTest load_model_under_test(const std::filesystem::path& path, const Overrides& overrides,
                                     const Dataset* data, const Shape& input,
                                     const std::string& device);

/// Returns the shape [C, H, W] of one image.
Shape image_shape(const Dataset& data);

/// Returns every Nth index of `size` images, where N is options.every; at most options.limit
/// indices if that is not 0.
std::vector<int64_t> choose_images(int64_t size, const CertificationOptions& options);

/// Returns the fields by which the classifier is told apart from others, see same_classifier.h.
/// `fingerprint` is that of subject.f.
ClassifierIdentity identify_classifier(const ModelUnderTest& subject,
                                       const std::string& fingerprint);

/// Returns the part of a table's identity that names classifier and images. `data_sha256` is
/// digest(data). The seed is certify.seed, or the run's.
SubjectIdentity identify(const ModelUnderTest& subject, const Dataset& data,
                         const std::string& data_sha256);

/// Returns the default path of a table about `path`: for "certificates" it is certificates.tsv in a
/// run folder, NAME.certificates.tsv beside NAME.safetensors.
std::filesystem::path table_path(const std::filesystem::path& path, const std::string& table);

}  // namespace fedsmooth::jobs
