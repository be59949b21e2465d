#include "fedsmooth/federated/objectives/objective.h"

#include <algorithm>
#include <deque>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/federated/client.h"
#include "fedsmooth/federated/objectives/objective_rows.h"
#include "fedsmooth/federated/objectives/scores/cross_entropy.h"
#include "fedsmooth/federated/objectives/smooth_mix.h"

namespace fedsmooth {
namespace {

// In the order of Method.
std::deque<Objective>& table() {
  constexpr auto cross_entropy = CrossEntropy::add<double>;
  constexpr BatchedForm batched = {ScoreKind::kCrossEntropy};
  static std::deque<Objective> rows = {
      {"standard", /*adds_noise=*/false, /*attacks=*/false, cross_entropy, batched},
      {"adversarial", /*adds_noise=*/false, /*attacks=*/true, cross_entropy, batched},
      {"gaussian", /*adds_noise=*/true, /*attacks=*/false, cross_entropy, batched},
      {"smoothadv", /*adds_noise=*/true, /*attacks=*/true, cross_entropy, batched},
      consistency_objective(),
      stability_objective(),
      macer_objective(),
      smoothmix_objective(),
      cat_rs_objective(),
      sun_objective(),
  };
  return rows;
}

}  // namespace

const Objective& objective_of(Method method) { return table().at(static_cast<size_t>(method)); }

bool reads(const Objective& objective, const std::string& key) {
  return std::find(objective.keys.begin(), objective.keys.end(), key) != objective.keys.end();
}

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

bool uses_attack(Method method, const ObjectiveOptions& options) {
  return objective_of(method).attacks || options.examples == ExampleSource::kSmoothAdv;
}

bool uses_attack(const LocalTask& task) { return uses_attack(task.method, task.objective); }

int64_t noises_of(const LocalTask& task) {
  return objective_of(task.method).adds_noise ? task.smoothing.m : 1;
}

int64_t batched_copies_of(const LocalTask& task) {
  const Objective& objective = objective_of(task.method);
  check(objective.batched.has_value(), "{}: has no batched form", objective.name);
  switch (objective.batched->examples) {
    case BatchedExamples::kNoisy:
      return noises_of(task);
    case BatchedExamples::kAndClean:
      return noises_of(task) + 1;
    case BatchedExamples::kMixed:
    case BatchedExamples::kMoved:
      return noises_of(task) * 2;
  }
  throw Bug("batched_copies_of: unknown examples");
}

NoiseAscent noise_ascent(const LocalTask& task) {
  const Objective& objective = objective_of(task.method);
  return objective.ascent == nullptr ? NoiseAscent{} : objective.ascent(task);
}

double passes_of(const LocalTask& task) {
  const auto m = static_cast<double>(noises_of(task));
  const std::optional<BatchedForm>& form = objective_of(task.method).batched;
  double ascent = 2 * m * static_cast<double>(noise_ascent(task).steps);
  if (form && form->examples == BatchedExamples::kMixed) {
    ascent += 2 * m * static_cast<double>(mix_ascent(task).steps);
  }
  if (uses_attack(task) && task.attack.epsilon > 0) {
    const bool two_point = task.attack.estimator == Estimator::kTwoPoint;
    const bool stochastic = task.attack.estimator == Estimator::kStochastic;
    ascent += static_cast<double>(task.attack.steps) * (stochastic ? 2 * m : m + two_point);
  }
  const double copies = form ? static_cast<double>(batched_copies_of(task)) : m;
  return ascent + 3 * copies * static_cast<double>(task.local.passes);
}

ScoreWeights<double> score_weights(const LocalTask& task) {
  const Objective& objective = objective_of(task.method);
  return objective.weights == nullptr ? ScoreWeights<double>{} : objective.weights(task);
}

void check_objective(Method method, const ObjectiveOptions& o) {
  const Objective& objective = objective_of(method);
  const auto refuse_unread = [&](const char* key, bool given) {
    if (given && !reads(objective, key)) {
      throw Error("objective.{}: train.method={:?} does not use it; leave it out", key,
                  objective.name);
    }
  };
  refuse_unread("lambda", o.lambda.has_value());
  refuse_unread("eta", o.eta.has_value());
  refuse_unread("examples", o.examples != ExampleSource::kNoise);
  refuse_unread("steps", o.steps.has_value());
  refuse_unread("step_size", o.step_size.has_value());
  refuse_unread("teacher", o.teacher != "auto");
  refuse_unread("teacher_votes", o.teacher_votes != ObjectiveOptions{}.teacher_votes);
}

Loss score_examples(const LocalTask& task, const Examples& list, const Array& logits) {
  const int64_t rows = logits.size(0), classes = logits.size(1), copies = list.copies;
  const Objective& objective = objective_of(task.method);
  const ScoreWeights<double> weights = score_weights(task);
  Loss loss{{}, Array(logits.sizes())};
  std::vector<double> z(copies * classes), p(z.size()), gradient(z.size());
  std::vector<double> target(classes), scratch(ScoredImage<double>::scratch_size(
                                           static_cast<int>(copies), static_cast<int>(classes)));
  for (int64_t j = 0; j < rows / copies; ++j) {
    const float* from = logits.floats() + j * copies * classes;
    std::copy(from, from + copies * classes, z.begin());
    ScoredImage<double> image;
    image.copies = static_cast<int>(copies);
    image.classes = image.stride = static_cast<int>(classes);
    image.logits = z.data();
    image.y = static_cast<int>(list.y[j]);
    image.weights = weights;
    if (!list.mix.empty()) image.mix = list.mix[j];
    if (!list.draws.empty()) image.draw = list.draws[j];
    if (list.targets.defined()) {
      std::copy_n(list.targets.floats() + j * classes, classes, target.begin());
      image.target = target.data();
    }
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
