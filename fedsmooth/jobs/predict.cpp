#include "fedsmooth/jobs/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/data/sources.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::jobs {
namespace {

struct Input {
  std::string name;
  Array image;         // [C, H, W] in [0, 1]
  uint32_t index = 0;  // names its noise
};

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Names a file's noise by its content, so that it gets the same votes alone and among others.
uint32_t content_name(const Array& pixels) {
  const std::string digest =
      sha256({static_cast<const char*>(pixels.data()), static_cast<size_t>(pixels.byte_count())});
  return static_cast<uint32_t>(std::stoul(digest.substr(0, 8), nullptr, 16));
}

Input load_input(const std::string& name, const Dataset* data) {
  if (name.empty()) throw Error("predict: the name of an image is empty");
  if (!is_index(name)) {
    const Array pixels = read_image(name);
    return {name, to_unit_interval(pixels), content_name(pixels)};
  }
  const int64_t index = std::stoll(name);
  if (index >= data->size()) {
    throw Error("{}: the test set has images 0 to {}", name, data->size() - 1);
  }
  return {name, data->image(index), static_cast<uint32_t>(index)};
}

// All before the first answer: a refused command prints nothing.
std::vector<Input> load_inputs(const std::vector<std::string>& names, const Dataset* data) {
  std::vector<Input> inputs;
  for (const std::string& name : names) {
    inputs.push_back(load_input(name, data));
    if (inputs.back().image.sizes() != inputs[0].image.sizes()) {
      throw Error("{}: differs in size from {}", name, names[0]);
    }
  }
  return inputs;
}

// Certificates are about one classifier: this arithmetic, this noise.
void warn_of_other_classifier(const std::string& path, const ModelUnderTest& subject,
                              const std::string& fingerprint, const Context& context) {
  const std::filesystem::path table = table_path(path, "certificates");
  if (!std::filesystem::exists(table) || !std::filesystem::exists(sidecar_path(table))) return;
  const CertificateIdentity certified = read_identity(table);
  const NoiseLaw* law = find_law(certified.noise.value_or("float"));
  std::vector<std::string> differences;
  if (certified.fingerprint.value_or(fingerprint) != fingerprint) {
    differences.push_back(fmt::format("its logits (here {}, there {})", subject.f.description,
                                      certified.base.value_or("unknown")));
  }
  if (certified.sigma.value_or(subject.sigma) != subject.sigma) {
    differences.push_back(fmt::format("sigma (here {})", subject.sigma));
  }
  if (law == nullptr || &drawn_today(*law) != subject.experiment.certify.noise) {
    differences.push_back("the kind of noise");
  }
  if (differences.empty()) return;
  context.warn(
      fmt::format("warning: this is not the classifier that was certified in {}; it differs in {}",
                  table.string(), fmt::join(differences, " and ")));
}

// A model file may name no classes.
std::vector<std::string> name_classes(const ModelUnderTest& subject) {
  std::vector<std::string> names = subject.class_names;
  for (auto c = std::ssize(names); c < subject.f.classes; ++c) {
    names.push_back(fmt::format("class {}", c));
  }
  return names;
}

}  // namespace

std::vector<Answer> predict(const PredictArguments& a, const Overrides& overrides,
                            const Context& context,
                            const std::function<void(const Answer&)>& on_answer) {
  check_context(context);
  std::optional<Dataset> data;
  if (std::any_of(a.images.begin(), a.images.end(), is_index)) {
    data = load_dataset(experiment_of_model(a.path, overrides).data, Split::kTest);
  }
  const Dataset* test = data ? &*data : nullptr;
  const std::vector<Input> inputs = load_inputs(a.images, test);
  if (inputs.empty()) return {};
  const Sizes sizes = inputs[0].image.sizes();
  const ModelUnderTest subject = load_under_test({a.path, a.with}, overrides, test,
                                                 {sizes[0], sizes[1], sizes[2]}, context.device);
  const Experiment& e = subject.experiment;
  const NoiseLaw& law = *e.certify.noise;
  check_predict_options(a.n, e.certify.alpha, subject.sigma, law);

  const std::unique_ptr<Sampler> sampler = make_sampler(subject.f, law, thread_count(context));
  const std::string& fingerprint = sampler->check(sizes);
  if (a.with.empty()) warn_of_other_classifier(a.path, subject, fingerprint, context);
  // Noise that an adversary can foresee lets him try inputs offline until one is answered wrongly.
  const uint64_t seed = given_seed(overrides).value_or(random_seed());
  const std::vector<std::string> names = name_classes(subject);
  std::vector<Answer> answers;
  for (const Input& input : inputs) {
    if (context.stopped()) throw Interrupted{};
    const Prediction found = fedsmooth::predict(*sampler, input.image, subject.sigma, a.n,
                                                e.certify.alpha, seed, input.index);
    const std::string answer = found.predict == kAbstain ? "abstain" : names[found.predict];
    answers.push_back({input.name, found.predict, answer, found.votes, names, seed});
    if (on_answer) on_answer(answers.back());
  }
  return answers;
}

}  // namespace fedsmooth::jobs
