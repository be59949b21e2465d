#include "fedsmooth/jobs/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/jobs/certification/inputs.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::jobs {
namespace {

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

}  // namespace

std::vector<Answer> predict(const PredictArguments& a, const Overrides& overrides,
                            const Context& context,
                            const std::function<void(const Answer&)>& on_answer) {
  check_context(context);
  std::optional<Dataset> data;
  const std::vector<Input> inputs =
      load_inputs(a.images, experiment_of_model(a.path, overrides).data, data);
  if (inputs.empty()) return {};
  const Dataset* test = data ? &*data : nullptr;
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
