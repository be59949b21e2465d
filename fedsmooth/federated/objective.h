// What a client minimises: how the examples of a minibatch are made, and how the logits of an
// image's noisy copies are scored. Objectives are rows of a table (objective.cpp); a score is a
// file of objectives/. docs/method.md has the formulas and where they are from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/attack/attack_smoothed.h"
#include "fedsmooth/federated/objectives/score.h"

namespace fedsmooth {

struct LocalStep;
struct LocalTask;

/// train.method: an index into the table of objectives.
enum class Method : int {
  kStandard,     // neither noise nor attack
  kAdversarial,  // attack on the unsmoothed classifier
  kGaussian,     // noise only
  kSmoothAdv,    // attack on the smoothed classifier
  kConsistency,  // noise, and answers that agree
};

enum class ExampleSource { kNoise, kSmoothAdv };

struct ObjectiveOptions {
  std::optional<double> lambda, eta;  // none ("auto"): the published value for this sigma
  ExampleSource examples = ExampleSource::kNoise;  // noisy images, or SmoothAdv's

  bool operator==(const ObjectiveOptions&) const = default;
};

/// A minibatch b: images x [B, C, H, W] in [0, 1], and their labels y.
struct Batch {
  Array x;
  Labels y;
};

/// The list L: rows [B copies, C, H, W], the copies of an image one after another.
struct Examples {
  Array rows;
  Labels y;  // [B]
  int64_t copies = 1;
};

/// One row of the table.
struct Objective {
  std::string name;
  bool adds_noise = true;  // m copies of an image; without noise one
  bool attacks = false;    // images are moved by attack_smoothed() first
  void (*score)(ScoredImage<double>&) = nullptr;
  std::optional<ScoreKind> on_gpu;  // none: the GPU does not know it and refuses it
  /// The published weights for examples of noise of this sigma; null: the score reads none.
  ScoreWeights<double> (*weights)(double sigma, ExampleSource examples) = nullptr;
  /// The list L of a minibatch with noises delta [B, m, C, H, W]; null: list_examples() has it.
  Examples (*list)(LocalStep& step, const Batch& b, const Array& delta) = nullptr;
};

const Objective& objective_of(Method method);

/// Adds a row to the table, for as long as the program runs; from then on train.method may name it.
/// Before any training begins, and from one thread.
Method add_objective(const Objective& objective);

/// The rows' names, in order.
std::vector<std::pair<std::string, Method>> method_names();

/// Whether images are attacked before they get noise.
bool attacks(Method method, const ObjectiveOptions& options);
bool attacks(const LocalTask& task);

/// Copies of an image: m, or 1 without noise.
int64_t copies_of(const LocalTask& task);

/// The weights that the task's score reads.
ScoreWeights<double> score_weights(const LocalTask& task);

/// Refuses options that the method would ignore.
void check_objective(Method method, const ObjectiveOptions& options);

/// A loss, the mean over a minibatch, and its gradient with respect to the logits.
struct Loss {
  Terms terms;
  Array gradient;  // [rows, K]
};

/// Scores logits [B copies, K] of a list.
Loss score_examples(const LocalTask& task, const Examples& list, const Array& logits);

}  // namespace fedsmooth
