// Objectives: how the examples of a minibatch are made, and how the logits of an image's noisy
// copies are scored. Each objective is a row of the table in objective.cpp; each score is a file of
// objectives/scores. docs/method.md has the formulas and their references.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/attack/attack_smoothed.h"
#include "fedsmooth/federated/objectives/scores/noise_ascent.h"
#include "fedsmooth/federated/objectives/scores/score.h"

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
  kStability,    // noisy copies answered as the image itself
  kMacer,        // noise, and a large certified radius
  kSmoothMix,    // answers that lose certainty on the way to an adversarial example
  kCatRs,        // confidence decides how many copies count
  kSun,          // hard noises, on images that are worth it
};

enum class ExampleSource { kNoise, kSmoothAdv };

/// A field without a value ("auto") stands for the published value for the task's sigma.
struct ObjectiveOptions {
  std::optional<double> lambda, eta;               // weights of the loss's terms
  ExampleSource examples = ExampleSource::kNoise;  // noisy images, or SmoothAdv's
  std::optional<int64_t> steps;                    // steps of the objective's own ascent
  std::optional<double> step_size;
  std::string teacher = "auto";  // for cat-rs: a model or a run; auto: one is trained first
  int64_t teacher_votes = 10'000;

  bool operator==(const ObjectiveOptions&) const = default;
};

/// A minibatch b: images x [B, C, H, W] in [0, 1], their labels y, and their indices in the data.
struct Batch {
  Array x;
  Labels y;
  std::vector<int64_t> indices;
};

/// The list L: rows [B copies, C, H, W], the copies of an image one after another.
struct Examples {
  Array rows;
  Labels y;  // [B]
  int64_t copies = 1;
  // For scores that read them, see ScoredImage: `mix` and `draws` [B], `targets` [B, K].
  std::vector<double> mix = {}, draws = {};
  Array targets = {};
};

/// The examples that an engine which trains many clients in one batch makes of an image.
enum class BatchedExamples {
  kNoisy,     // m copies, with noise if the objective adds it
  kAndClean,  // the image itself, then m noisy copies
  kMixed,     // m noisy copies, then m of a point on the way to an adversarial example
  kMoved,     // m noisy copies, then m with the noises that NoiseAscent moved
};

/// The score and the examples by which such an engine computes an objective.
struct BatchedForm {
  ScoreKind score = ScoreKind::kCrossEntropy;
  BatchedExamples examples = BatchedExamples::kNoisy;
};

/// Returns, for each of these images, how many of its votes [first, first + count) are right.
using RightVotes = std::function<std::vector<int64_t>(const std::vector<int64_t>& images,
                                                      int64_t first, int64_t count)>;

/// One row of the table.
struct Objective {
  std::string name;
  bool adds_noise = true;  // m noisy copies per image; false: one copy without noise
  bool attacks = false;    // images are moved by attack_smoothed() first
  void (*score)(ScoredImage<double>&) = nullptr;
  std::optional<BatchedForm> batched = {};  // nothing: GPUs refuse it
  std::vector<std::string> keys = {};       // keys of [objective] that it reads
  /// Returns the weights that the score reads, with the published values where the task has none;
  /// null: the score reads none.
  ScoreWeights<double> (*weights)(const LocalTask& task) = nullptr;
  /// Makes the list L of a minibatch with noises delta [B, m, C, H, W]; null: list_examples() makes
  /// it.
  Examples (*list)(LocalStep& step, const Batch& b, const Array& delta) = nullptr;
  NoiseAscent (*ascent)(const LocalTask& task) = nullptr;  // null: noises are not moved
  /// Chooses the images of all minibatches of client k in round t, one after another; null:
  /// shuffle_images() does.
  std::vector<int64_t> (*choose)(const LocalTask& task, const std::vector<int64_t>& images,
                                 int64_t k, int64_t t) = nullptr;
  /// table() returns the number of the table LocalTask::image_weights by which the task's round
  /// draws images; nothing if it needs none. weigh() makes the table from votes of the round's
  /// global weights and the previous table, which may be undefined. Null: the objective has no such
  /// tables.
  std::optional<int64_t> (*table)(const LocalTask& task) = nullptr;
  Array (*weigh)(const LocalTask& task, const RightVotes& votes, const Array& before) = nullptr;
};

const Objective& objective_of(Method method);
bool reads(const Objective& objective, const std::string& key);

/// Adds a row to the table for the rest of the program; train.method may then name it. Must be
/// called before any training begins, from one thread.
Method add_objective(const Objective& objective);

/// Returns the names of the rows, in order.
std::vector<std::pair<std::string, Method>> method_names();

/// Returns whether images are attacked before noise is added.
bool uses_attack(Method method, const ObjectiveOptions& options);
bool uses_attack(const LocalTask& task);

/// Returns the number of noises per image: m, or 1 (zeros) without noise.
int64_t noises_of(const LocalTask& task);
/// Returns the number of examples per image in the objective's batched form.
int64_t batched_copies_of(const LocalTask& task);

/// Returns how the task's noises are moved; with 0 steps if they are not.
NoiseAscent noise_ascent(const LocalTask& task);

/// Returns the cost of a local step per image in forward passes. A backward pass to the image
/// counts as one, a backward pass to the weights as two.
double passes_of(const LocalTask& task);

/// Returns the weights that the task's score reads.
ScoreWeights<double> score_weights(const LocalTask& task);

/// Throws an Error for options that the method would ignore.
void check_objective(Method method, const ObjectiveOptions& options);

/// A loss, the mean over a minibatch, and its gradient with respect to the logits.
struct Loss {
  Terms terms;
  Array gradient;  // [rows, K]
};

/// Scores logits [B copies, K] of a list.
Loss score_examples(const LocalTask& task, const Examples& list, const Array& logits);

}  // namespace fedsmooth
