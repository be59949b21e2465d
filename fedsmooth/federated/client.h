// One client's part of a round: LocalTrain and SmoothAdv of the paper's Algorithm 1. What SmoothAdv
// puts on its list and minimises on it is the objective's (objective.h).
#pragma once

#include <vector>

#include "fedsmooth/data/dataset.h"
#include "fedsmooth/federated/clients/partition.h"
#include "fedsmooth/federated/objectives/objective.h"
#include "fedsmooth/federated/passes.h"
#include "fedsmooth/federated/telemetry.h"

namespace fedsmooth {

struct SmoothingOptions {
  double sigma = 0.25;  // standard deviation of the noise, in units of the [0, 1] image
  int64_t m = 2;        // noise samples per image

  bool operator==(const SmoothingOptions&) const = default;
};

struct LocalOptions {
  int64_t steps = 20;  // minibatches a round
  int64_t batch = 30;  // clean images a minibatch
  int64_t passes = 1;  // SGD steps over the list L of noisy adversarial examples
  double learning_rate = 0.01;
  /// The fraction of the learning rate that is left in a round's last step: it falls linearly.
  double decay = 1.0;
  double momentum = 0.9;  // kept within a client's round, and in centralized training beyond it
  double weight_decay = 1e-4;
  double mu = 0.0;         // FedProx (Li et al. 2020): the gradient gets + mu (w - w_global)
  bool calibrate = false;  // CalFAT: logits get the logarithms of the client's class shares

  /// The learning rate of a round's step i, counted from 0. A round of one step has all of it.
  double rate_of_step(int64_t i) const;

  bool operator==(const LocalOptions&) const = default;
};

/// The options of a local step. Those that without_numbers() leaves decide which operations a step
/// has; an engine may run steps that have them in common side by side.
struct StepOptions {
  bool augment = true;
  Method method = Method::kSmoothAdv;
  SmoothingOptions smoothing;
  AttackOptions attack;
  LocalOptions local;
  ObjectiveOptions objective;

  /// Returns a copy in which every number that a step only reads has one fixed value. An option
  /// that this function does not name decides which operations a step consists of.
  StepOptions without_numbers() const;

  bool operator==(const StepOptions&) const = default;
};

/// All that a client needs to know beyond the weights it is sent. The data outlive it.
struct LocalTask {
  const Network& network;
  const Dataset& data;
  bool augment = true;
  Method method = Method::kSmoothAdv;
  SmoothingOptions smoothing;
  AttackOptions attack;
  LocalOptions local;
  uint64_t seed = 0;
  ObjectiveOptions objective;
  double progress = 0;                 // share of the run's rounds that are done
  Array teacher = {};                  // [images, K]: shares of a teacher's votes, for cat-rs
  Array image_weights = {};            // [images], by which sun draws them; 0: never
  std::vector<int64_t> flippers = {};  // clients, rising, that train on flipped labels
  /// Centralized: a round is an interval of one training. Momentum is kept from round to round, and
  /// minibatches are counted from the first round on.
  bool continuous = false;

  /// The round that keys the streams of round t, and the number of its first minibatch in them.
  int64_t stream_round(int64_t t) const { return continuous ? 0 : t; }
  int64_t first_step(int64_t t) const { return continuous ? t * local.steps : 0; }
};

/// The images that client `k` takes in round `t`, minibatch after minibatch.
std::vector<int64_t> choose_images(const LocalTask& task, const std::vector<int64_t>& images,
                                   int64_t k, int64_t t);

/// Returns the options that decide the operations of the task's local step: without_numbers(), with
/// the number of steps of the objective's own ascent, which may depend on sigma.
StepOptions step_of(const LocalTask& task);

/// Whether client `k` takes label y for K - 1 - y.
bool flips_labels(const LocalTask& task, int64_t k);

/// A client's streams in round `t` are make_key(seed, purpose, t) with its minibatch as the item
/// and `k` as the client; see LocalTask for continuous tasks. The `count` images that client `k`
/// takes in round `t` after as many as it `skips`: one random order of its images after another.
std::vector<int64_t> shuffle_images(const std::vector<int64_t>& images, int64_t count,
                                    uint64_t seed, int64_t k, int64_t t, int64_t skips = 0);

/// Those that the task's client `k` takes in round `t`.
std::vector<int64_t> images_of_round(const LocalTask& task, const std::vector<int64_t>& images,
                                     int64_t k, int64_t t);

struct Update {
  Weights weights;
  Telemetry telemetry;
  Weights velocity = {};  // of a continuous task; zero where nothing is trained
};

/// LocalTrain: client `k` holding `images`, starting from `global`, in round `t`. A pure function
/// of these, by passes of the task's network. A continuous task takes up the momentum `velocity`;
/// empty: none yet.
Update local_train(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                   const std::vector<int64_t>& images, int64_t t, const Weights& velocity = {});

}  // namespace fedsmooth
