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
#include "fedsmooth/report/norm.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

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

bool has_equal_channels(const Array& pixels) {
  const int64_t area = pixels.size(1) * pixels.size(2);
  const uint8_t* first = pixels.bytes();
  return std::equal(first, first + area, first + area) &&
         std::equal(first, first + area, first + 2 * area);
}

// Channels of the images that the model is for. A TorchScript module does not say.
int64_t channels_of_model(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? path / "model.safetensors" : path;
  return file.extension() == ".pt" ? 3 : load_model(file).network.input[0];
}

// Pixels [3, H, W] of a file, or [1, H, W] if they are grey and a model of grey images is asked.
Array read_pixels(const std::string& name, const std::string& model, const Dataset* data) {
  const Array pixels = read_image(name);
  if (!has_equal_channels(pixels)) return pixels;
  const int64_t channels = data ? data->shape()[0] : channels_of_model(model);
  if (channels != 1) return pixels;
  Array grey({1, pixels.size(1), pixels.size(2)}, Array::Type::kByte);
  std::copy_n(pixels.bytes(), grey.count(), grey.bytes());
  return grey;
}

Input load_input(const std::string& name, const std::string& model, const Dataset* data) {
  if (name.empty()) throw Error("the name of an image is empty");
  if (!is_index(name)) {
    const Array pixels = read_pixels(name, model, data);
    return {name, to_unit_interval(pixels), content_name(pixels)};
  }
  const int64_t index = std::stoll(name);
  if (index >= data->size()) {
    throw Error("{}: the test set has images 0 to {}", name, data->size() - 1);
  }
  return {name, data->image(index), static_cast<uint32_t>(index)};
}

// All before the first answer: a refused command prints nothing.
std::vector<Input> load_inputs(const PredictArguments& a, const Dataset* data) {
  std::vector<Input> inputs;
  for (const std::string& name : a.images) {
    inputs.push_back(load_input(name, a.path, data));
    if (inputs.back().image.sizes() != inputs[0].image.sizes()) {
      throw Error("{}: differs in size from {}", name, a.images[0]);
    }
  }
  return inputs;
}

// Certificates are about one classifier: this arithmetic, this noise.
void warn_of_other_classifier(const std::string& path, const ModelUnderTest& subject,
                              const std::string& fingerprint, const Context& context) {
  const fs::path table = table_path(path, "certificates");
  if (!fs::exists(table) || !fs::exists(sidecar_path(table))) return;
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

// The smoothed classifier and the images that it is asked about.
struct Questions {
  std::optional<Dataset> data;  // if an image is given by its index
  std::vector<Input> inputs;
  ModelUnderTest subject;
  std::unique_ptr<Sampler> sampler;
  std::vector<std::string> names;  // of the classes
  uint64_t seed = 0;
};

Questions load_questions(const PredictArguments& a, const Overrides& overrides,
                         const Context& context) {
  check_context(context);
  Questions q;
  if (std::any_of(a.images.begin(), a.images.end(), is_index)) {
    q.data = load_dataset(data_of_model(a.path, overrides), Split::kTest);
  }
  const Dataset* test = q.data ? &*q.data : nullptr;
  q.inputs = load_inputs(a, test);
  if (q.inputs.empty()) return q;
  const Sizes sizes = q.inputs[0].image.sizes();
  q.subject = load_under_test({a.path, a.with}, overrides, test, {sizes[0], sizes[1], sizes[2]},
                              context.device);
  const NoiseLaw& law = *q.subject.experiment.certify.noise;
  q.sampler = make_sampler(q.subject.f, law, thread_count(context), context.stopped);
  q.names = name_classes(q.subject);
  // Noise that an adversary can foresee lets him try inputs offline until one is answered wrongly.
  q.seed = given_seed(overrides).value_or(random_seed());
  return q;
}

// Also warns of a table about another classifier.
void check_classifier(Questions& q, const PredictArguments& a, const Context& context) {
  const std::string& fingerprint = q.sampler->check(q.inputs[0].image.sizes());
  if (a.with.empty()) warn_of_other_classifier(a.path, q.subject, fingerprint, context);
}

}  // namespace

std::vector<Answer> predict(const PredictArguments& a, const Overrides& overrides,
                            const Context& context,
                            const std::function<void(const Answer&)>& on_answer) {
  Questions q = load_questions(a, overrides, context);
  if (q.inputs.empty()) return {};
  const double sigma = q.subject.sigma, alpha = q.subject.experiment.certify.alpha;
  check_predict_options(a.n, alpha, sigma, q.sampler->law());
  check_classifier(q, a, context);
  std::vector<Answer> answers;
  for (const Input& input : q.inputs) {
    if (context.stopped()) throw Interrupted{};
    const Prediction found =
        fedsmooth::predict(*q.sampler, input.image, sigma, a.n, alpha, q.seed, input.index);
    const std::string answer = found.predict == kAbstain ? "abstain" : q.names[found.predict];
    answers.push_back({input.name, found.predict, answer, found.votes, q.names, q.seed});
    if (on_answer) on_answer(answers.back());
  }
  return answers;
}

std::vector<ProvedAnswer> certify_images(
    const PredictArguments& a, const Overrides& overrides, const Context& context,
    const std::function<void(const ProvedAnswer&)>& on_answer) {
  Questions q = load_questions(a, overrides, context);
  if (q.inputs.empty()) return {};
  CertificationOptions options = q.subject.experiment.certify;
  options.only_correct = false;  // of a run's own [certify]: images have no labels here
  check_certify_options(options, q.subject.sigma, q.sampler->law());
  check_classifier(q, a, context);
  const std::string norm(norm_name(q.sampler->law().norm));
  std::vector<ProvedAnswer> answers;
  const auto progress = begin_progress(context, "certify", 0, std::ssize(q.inputs));
  for (const Input& input : q.inputs) {
    if (context.stopped()) throw Interrupted{};
    const Certificate c =
        fedsmooth::certify(*q.sampler, input.image, q.subject.sigma, options, q.seed, input.index);
    const std::string answer = c.predict == kAbstain ? "abstain" : q.names[c.predict];
    answers.push_back({input.name, c, answer, norm, options.alpha, q.seed});
    if (answers.size() < q.inputs.size()) progress->step(answer);  // the last one is printed
    if (on_answer) on_answer(answers.back());
  }
  return answers;
}

}  // namespace fedsmooth::jobs
