#include "fedsmooth/jobs/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/jobs/certification/inputs.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/report/norm.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// Warns if the certificates beside the model are of another classifier: other logits, sigma or kind
// of noise.
void warn_of_other_classifier(const std::string& path, const ModelUnderTest& subject,
                              const std::string& fingerprint, const Context& context) {
  const fs::path table = table_path(path, "certificates");
  if (!fs::exists(table) || !fs::exists(sidecar_path(table))) return;
  const CertificateIdentity certified = read_identity(table);
  const ClassifierDifference found =
      compare_classifiers({certified, certified.law()}, identify_classifier(subject, fingerprint));
  std::vector<std::string> differences;
  if (found.logits) {
    differences.push_back(fmt::format("its logits (here {}, there {})", subject.f.description,
                                      certified.base.value_or("unknown")));
  }
  if (found.sigma) differences.push_back(fmt::format("sigma (here {})", subject.sigma));
  if (found.noise) differences.push_back("the kind of noise");
  if (differences.empty()) return;
  context.warn(
      fmt::format("warning: this is not the classifier that was certified in {}; it differs in {}",
                  table.string(), fmt::join(differences, " and ")));
}

// The smoothed classifier and the images that it is asked about.
struct Questions {
  std::optional<Dataset> data;  // the test set, if an image is given by its index
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
  q.inputs = load_inputs(a.images, a.path, overrides, q.data);
  if (q.inputs.empty()) return q;
  const Dataset* test = q.data ? &*q.data : nullptr;
  const Sizes sizes = q.inputs[0].image.sizes();
  q.subject = load_under_test({a.path, a.with}, overrides, test, {sizes[0], sizes[1], sizes[2]},
                              context.device);
  const NoiseLaw& law = *q.subject.experiment.certify.noise;
  q.sampler = make_sampler(q.subject.f, law, thread_count(context), context.stopped);
  q.names = name_classes(q.subject);
  // An adversary who could predict the noise could try inputs offline until one is answered
  // wrongly.
  q.seed = given_seed(overrides).value_or(random_seed());
  return q;
}

// Checks that the classifier is a function, and warns if certificates are of another classifier.
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
    answers.push_back(
        {input.name, input.label, found.predict, answer, found.votes, q.names, q.seed});
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
  options.only_correct =
      false;  // a run's [certify] may set it, but these images may have no labels
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
    answers.push_back({input.name, input.label, c, answer, norm, options.alpha, q.seed});
    if (answers.size() < q.inputs.size()) progress->step(answer);
    if (on_answer) on_answer(answers.back());
  }
  return answers;
}

std::string describe(const ProvedAnswer& answer) {
  if (answer.certificate.predict == kAbstain) return "abstains, nothing is proved";
  const std::string norm = answer.norm == "l2" ? "" : " in " + answer.norm;
  const double radius = answer.certificate.radius;
  const int digits = radius < 0.1 ? 4 : 2;
  const double scale = std::pow(10, digits);
  return fmt::format("{}, proved within {:.{}f}{}", spoken_name("class", answer.class_name),
                     std::floor(radius * scale) / scale, digits, norm);
}

std::string spoken_name(const std::string& kind, const std::string& name) {
  const bool is_number =
      !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? kind + " " + name : name;
}

}  // namespace fedsmooth::jobs
