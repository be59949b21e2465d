#include "fedsmooth/jobs/certification/model_under_test.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/data/data_source.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

bool given(const Overrides& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const auto& pair) { return pair.first == key; });
}

double settle_sigma(const ModelUnderTest& subject, double trained, bool smoothing_given,
                    bool is_run) {
  const Experiment& e = subject.experiment;
  if (e.certify.sigma > 0) return e.certify.sigma;
  if (is_run || smoothing_given) return e.smoothing.sigma;
  if (trained > 0) return trained;
  throw Error("{}: does not say for which noise it was trained; give --certify.sigma",
              subject.model_path.string());
}

void check_is_of_run(const fs::path& run, const std::string& model_sha256) {
  if (trained_sha256(run).value_or(model_sha256) != model_sha256) {
    throw Error("{}: is not the model that this run trained; provenance.json has another SHA-256",
                (run / "model.safetensors").string());
  }
}

// Throws an Error if a class of the model has another number in the data: labels and answers would
// be compared although they mean different classes. Names that only one of them has say nothing.
void check_class_numbers(const std::vector<std::string>& of_model,
                         const std::vector<std::string>& of_data, const fs::path& path) {
  for (size_t i = 0; i < std::min(of_model.size(), of_data.size()); ++i) {
    if (of_model[i] == of_data[i]) continue;
    const auto there = std::ranges::find(of_data, of_model[i]);
    if (there == of_data.end()) continue;
    throw Error("{}: its class {} is {:?}, which is class {} of the data; give data of its classes",
                path.string(), i, of_model[i].substr(0, 40), there - of_data.begin());
  }
}

}  // namespace

Experiment experiment_of_model(const fs::path& path, const Overrides& overrides) {
  if (!fs::exists(path)) throw Error("{}: no such run or model", path.string());
  Experiment experiment;
  if (fs::is_directory(path)) {
    experiment = open_run(path).experiment;
  } else {
    experiment.model.name.clear();  // a model file names its own network
  }
  apply_overrides(experiment, overrides);
  return experiment;
}

DataOptions data_of_model(const fs::path& path, const Overrides& overrides) {
  const Experiment experiment = experiment_of_model(path, overrides);
  if (!fs::is_directory(path) && !given(overrides, "data.name")) {
    throw Error("{}: does not say which data set it is for; give --data.name, one of {}",
                path.string(), fmt::join(data_sources().names(), ", "));
  }
  return experiment.data;
}

std::optional<uint64_t> given_seed(const Overrides& overrides) {
  Experiment any;
  std::optional<uint64_t> seed;
  for (const auto& [key, value] : overrides) {
    if (key != "seed" && key != "certify.seed") continue;
    set_key(any, key, value);
    seed = key == "seed" ? any.seed : any.certify.seed;
  }
  return seed;
}

ModelUnderTest load_model_under_test(const fs::path& path, const Overrides& overrides,
                                     const Dataset* data, const Shape& input,
                                     const std::string& device) {
  if (is_run_of_groups(path)) {
    throw Error("{}: is a run of several groups; each of them is a model, {} for one",
                path.string(), group_folder(path, 1).string());
  }
  ModelUnderTest subject;
  subject.experiment = experiment_of_model(path, overrides);
  subject.model_path = fs::is_directory(path) ? path / "model.safetensors" : path;
  Experiment& e = subject.experiment;
  set_default_normalization(e.model, e.data.name, input[0]);
  const std::string bytes = read_file(subject.model_path);
  subject.sha256 = sha256(bytes);
  if (fs::is_directory(path)) check_is_of_run(path, subject.sha256);
  if (data != nullptr) subject.class_names = data->class_names;

  double trained = 0.0;
  if (subject.model_path.extension() == ".pt") {
    subject.f = choose_classifier(device, subject.model_path, input, *e.certify.noise);
    subject.load_gradients = [path = subject.model_path] {
      return [path] { return script_gradients(path); };
    };
    if (data != nullptr && subject.f.classes != data->classes()) {
      throw Error("{}: gives {} outputs, the data has {} classes", subject.model_path.string(),
                  subject.f.classes, data->classes());
    }
  } else {
    const ImageKind kind = {input, data == nullptr ? 0 : data->classes()};
    const Model model =
        parse_model(bytes, subject.model_path.string(), e.model, data == nullptr ? nullptr : &kind);
    if (model.network.input != input) {
      throw Error("{}: made for images [{}], this one has [{}]", subject.model_path.string(),
                  fmt::join(model.network.input, ", "), fmt::join(input, ", "));
    }
    subject.f = choose_classifier(device, model, *e.certify.noise);
    subject.load_gradients = [device, model] { return choose_gradients(device, model); };
    trained = model.sigma;
    subject.model = std::make_shared<const Model>(model);
    if (data == nullptr) {
      subject.class_names = model.class_names;
    } else {
      check_class_numbers(model.class_names, data->class_names, subject.model_path);
    }
  }
  const bool smoothing_given = given(overrides, "smoothing.sigma");
  subject.sigma = settle_sigma(subject, trained, smoothing_given, fs::is_directory(path));
  return subject;
}

Shape image_shape(const Dataset& data) {
  const Sizes sizes = data.shape();
  return {sizes[0], sizes[1], sizes[2]};
}

std::vector<int64_t> choose_images(int64_t size, const CertificationOptions& o) {
  std::vector<int64_t> images;
  for (int64_t i = 0; i < size; i += o.every) {
    if (o.limit > 0 && static_cast<int64_t>(images.size()) == o.limit) break;
    images.push_back(i);
  }
  return images;
}

ClassifierIdentity identify_classifier(const ModelUnderTest& subject,
                                       const std::string& fingerprint) {
  ClassifierIdentity identity{{}, *subject.experiment.certify.noise};
  identity.subject.model_sha256 = subject.sha256;
  identity.subject.sigma = subject.sigma;
  identity.subject.fingerprint = fingerprint;
  identity.subject.base = subject.f.description;
  return identity;
}

SubjectIdentity identify(const ModelUnderTest& subject, const Dataset& data,
                         const std::string& data_sha256) {
  const Experiment& e = subject.experiment;
  SubjectIdentity identity = identify_classifier(subject, subject.fingerprint).subject;
  if (!subject.members.empty()) {
    identity.members.emplace();
    for (const MemberFile& member : subject.members) identity.members->push_back(member.sha256);
  }
  if (subject.f.groups > 0) identity.groups = subject.f.groups;
  identity.data = e.data.name;
  identity.data_sha256 = data_sha256;
  if (e.data.held_out > 0) identity.held_out = e.data.held_out;
  identity.seed = certified_seed(e);
  identity.every = e.certify.every;
  identity.limit = e.certify.limit;
  identity.images = std::ssize(choose_images(data.size(), e.certify));
  return identity;
}

fs::path table_path(const fs::path& path, const std::string& table) {
  if (fs::is_directory(path)) return path / (table + ".tsv");
  return fs::path(path).replace_extension("." + table + ".tsv");
}

}  // namespace fedsmooth::jobs
