#include "fedsmooth/federated/objective.h"

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/federated/client.h"
#include "fedsmooth/federated/objectives/consistency.h"
#include "fedsmooth/federated/objectives/cross_entropy.h"

namespace fedsmooth {
namespace {

// One of three values, published for sigma 0.25, 0.5 and 1; for another sigma that of the nearest.
double by_sigma(double sigma, double quarter, double half, double one) {
  return sigma < 0.375 ? quarter : sigma < 0.75 ? half : one;
}

ScoreWeights<double> consistency_weights(double sigma, ExampleSource examples) {
  const bool attacked = examples == ExampleSource::kSmoothAdv;
  return {attacked ? by_sigma(sigma, 2, 1, 1) : by_sigma(sigma, 20, 10, 10), 0.5};
}

// In the order of Method.
std::vector<Objective>& table() {
  constexpr auto cross_entropy = CrossEntropy::add<double>;
  constexpr ScoreKind on_gpu = ScoreKind::kCrossEntropy;
  static std::vector<Objective> rows = {
      {"standard", /*adds_noise=*/false, /*attacks=*/false, cross_entropy, on_gpu},
      {"adversarial", /*adds_noise=*/false, /*attacks=*/true, cross_entropy, on_gpu},
      {"gaussian", /*adds_noise=*/true, /*attacks=*/false, cross_entropy, on_gpu},
      {"smoothadv", /*adds_noise=*/true, /*attacks=*/true, cross_entropy, on_gpu},
      {"consistency", /*adds_noise=*/true, /*attacks=*/false, Consistency::add<double>,
       ScoreKind::kConsistency, consistency_weights},
  };
  return rows;
}

}  // namespace

const Objective& objective_of(Method method) { return table().at(static_cast<size_t>(method)); }

Method add_objective(const Objective& objective) {
  for (const Objective& row : table()) {
    check(row.name != objective.name, "add_objective: there is a {} already", row.name);
  }
  table().push_back(objective);
  return static_cast<Method>(table().size() - 1);
}

std::vector<std::pair<std::string, Method>> method_names() {
  std::vector<std::pair<std::string, Method>> names;
  for (size_t i = 0; i < table().size(); ++i) {
    names.emplace_back(table()[i].name, static_cast<Method>(i));
  }
  return names;
}

bool attacks(Method method, const ObjectiveOptions& options) {
  return objective_of(method).attacks || options.examples == ExampleSource::kSmoothAdv;
}

bool attacks(const LocalTask& task) { return attacks(task.method, task.objective); }

int64_t copies_of(const LocalTask& task) {
  return objective_of(task.method).adds_noise ? task.smoothing.m : 1;
}

ScoreWeights<double> score_weights(const LocalTask& task) {
  const Objective& objective = objective_of(task.method);
  if (objective.weights == nullptr) return {};
  const auto [lambda, eta] = objective.weights(task.smoothing.sigma, task.objective.examples);
  return {task.objective.lambda.value_or(lambda), task.objective.eta.value_or(eta)};
}

void check_objective(Method method, const ObjectiveOptions& options) {
  const Objective& objective = objective_of(method);
  const auto refuse = [&](const char* key, const char* why) {
    throw Error("objective.{}: train.method=\"{}\" {}; leave it out", key, objective.name, why);
  };
  if (objective.weights == nullptr) {
    if (options.lambda) refuse("lambda", "has no such weight");
    if (options.eta) refuse("eta", "has no such weight");
    if (options.examples == ExampleSource::kSmoothAdv) refuse("examples", "makes its own examples");
  }
}

Loss score_examples(const LocalTask& task, const Examples& list, const Array& logits) {
  const int64_t rows = logits.size(0), classes = logits.size(1), copies = list.copies;
  const Objective& objective = objective_of(task.method);
  const ScoreWeights<double> weights = score_weights(task);
  Loss loss{{}, Array(logits.sizes())};
  std::vector<double> z(copies * classes), p(z.size()), gradient(z.size());
  std::vector<double> scratch(ScoredImage<double>::kScratchRows * classes);
  for (int64_t j = 0; j < rows / copies; ++j) {
    const float* from = logits.floats() + j * copies * classes;
    std::copy(from, from + copies * classes, z.begin());
    ScoredImage<double> image;
    image.copies = static_cast<int>(copies);
    image.classes = image.stride = static_cast<int>(classes);
    image.logits = z.data();
    image.y = static_cast<int>(list.y[j]);
    image.weights = weights;
    image.p = p.data();
    image.scratch = scratch.data();
    image.gradient = gradient.data();
    objective.score(image);
    float* to = loss.gradient.floats() + j * copies * classes;
    for (size_t k = 0; k < gradient.size(); ++k) {
      to[k] = static_cast<float>(gradient[k] / static_cast<double>(rows));
    }
    loss.terms.fit += image.terms.fit / static_cast<double>(rows);
    loss.terms.robust += image.terms.robust / static_cast<double>(rows);
    loss.terms.entropy += image.terms.entropy / static_cast<double>(rows);
  }
  return loss;
}

}  // namespace fedsmooth
