// One client's part of a round: LocalTrain and SmoothAdv of the paper's Algorithm 1. The objective
// (objective.h) decides which examples are on SmoothAdv's list and which loss they get.
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
  /// Fraction of the learning rate in a round's last step. The rate falls linearly; 1: it is
  /// constant.
  double decay = 1.0;
  double momentum = 0.9;  // kept within a client's round, and in centralized training beyond it
  double weight_decay = 1e-4;
  double mu = 0.0;         // FedProx (Li et al. 2020): the gradient gets + mu (w - w_global)
  bool calibrate = false;  // CalFAT: add the logarithms of the client's class shares to logits

  /// Returns the learning rate of a round's step i, counted from 0. A round of one step has the
  /// full rate.
  double rate_of_step(int64_t i) const;

  bool operator==(const LocalOptions&) const = default;
};

/// The options of a local step. Steps whose without_numbers() are equal consist of the same
/// operations, so an engine may run them side by side.
struct StepOptions {
  bool augment = true;
  Method method = Method::kSmoothAdv;
  SmoothingOptions smoothing;
  AttackOptions attack;
  LocalOptions local;
  ObjectiveOptions objective;

  /// Returns a copy in which every number that a step only reads has one fixed value. The options
  /// that it leaves as they are decide which operations a step consists of.
  StepOptions without_numbers() const;

  bool operator==(const StepOptions&) const = default;
};

/// Everything that a client needs beyond the weights that it is sent. The network and the data must
/// outlive it.
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
  double progress = 0;                 // fraction of the run's rounds that are done
  Array teacher = {};                  // [images, K]: shares of a teacher's votes, for cat-rs
  Array image_weights = {};            // [images]: weights by which sun draws images; 0: never
  std::vector<int64_t> flippers = {};  // clients that train on flipped labels, ascending
  /// Centralized: a round is an interval of one training. Momentum is kept from round to round, and
  /// minibatches are counted from the first round on.
  bool continuous = false;

  /// Return the round number that keys the streams of round t, and the number of round t's first
  /// minibatch in these streams.
  int64_t stream_round(int64_t t) const { return continuous ? 0 : t; }
  int64_t first_step(int64_t t) const { return continuous ? t * local.steps : 0; }
};

/// Returns the images of client `k` in round `t`, minibatch after minibatch, as the task's
/// objective chooses them.
std::vector<int64_t> choose_images(const LocalTask& task, const std::vector<int64_t>& images,
                                   int64_t k, int64_t t);

/// Returns the options that decide the operations of the task's local step: without_numbers(), with
/// the number of steps of the objective's own ascent, which may depend on sigma.
StepOptions step_of(const LocalTask& task);

/// Returns whether client `k` trains on K - 1 - y in place of label y.
bool flips_labels(const LocalTask& task, int64_t k);

/// Returns images [skips, skips + count) of client k's sequence in round t, a concatenation of
/// random permutations of its images. The streams of a client are make_key(seed, purpose, t) with
/// its minibatch as the item and `k` as the client; see LocalTask for continuous tasks.
std::vector<int64_t> shuffle_images(const std::vector<int64_t>& images, int64_t count,
                                    uint64_t seed, int64_t k, int64_t t, int64_t skips = 0);

/// Returns shuffle_images() for the task's client `k` in round `t`: one image for each example of
/// its minibatches.
std::vector<int64_t> images_of_round(const LocalTask& task, const std::vector<int64_t>& images,
                                     int64_t k, int64_t t);

struct Update {
  Weights weights;
  Telemetry telemetry;
  Weights velocity = {};  // momentum of a continuous task; zero for running statistics
};

/// LocalTrain: trains client `k` with its `images` from `global` in round `t`. The result is a pure
/// function of these; `passes` are those of the task's network, for one thread. A continuous task
/// continues with the momentum `velocity`; empty: none yet.
Update local_train(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                   const std::vector<int64_t>& images, int64_t t, const Weights& velocity = {});

}  // namespace fedsmooth
