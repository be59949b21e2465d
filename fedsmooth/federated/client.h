// One client's part of a round: LocalTrain and SmoothAdv of the paper's Algorithm 1, and the
// methods of its ablations.
#pragma once

#include <array>
#include <optional>

#include "fedsmooth/attack/smooth_adv.h"
#include "fedsmooth/data/dataset.h"
#include "fedsmooth/federated/order_free_sum.h"
#include "fedsmooth/federated/partition.h"
#include "fedsmooth/federated/passes.h"

namespace fedsmooth {

enum class Method {
  kStandard,     // neither noise nor attack
  kAdversarial,  // attack on the unsmoothed classifier
  kGaussian,     // noise only
  kSmoothAdv,    // attack on the smoothed classifier
};

struct SmoothingOptions {
  double sigma = 0.25;  // standard deviation of the noise, in units of the [0, 1] image
  int64_t m = 2;        // noise samples per image
};

struct LocalOptions {
  int64_t steps = 20;  // minibatches a round
  int64_t batch = 30;  // clean images a minibatch
  int64_t passes = 1;  // SGD steps over the list L of noisy adversarial examples
  double learning_rate = 0.01;
  double momentum = 0.9;  // kept within a client's round
  double weight_decay = 1e-4;
  double mu = 0.0;  // FedProx (Li et al. 2020): the gradient gets + mu (w - w_global)
};

bool adds_noise(Method method);
bool attacks(Method method);

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
};

/// What a round tells about its training and its attacks. Sums of integers throughout, so that
/// clients can be added up by anyone in any order.
struct Telemetry {
  static constexpr int64_t kBins = 200;  // of |x_adv - x| / epsilon, from 0 to 1

  OrderFreeSum loss;  // over SGD steps
  int64_t steps = 0;
  OrderFreeSum perturbation;  // over images, of |x_adv - x| / epsilon
  OrderFreeSum drop;          // over images, of the fall of the true class's mean probability
  int64_t attacked = 0;       // images
  OrderFreeSum cosine;        // over images, of that between one-point and true gradient
  int64_t compared = 0;       // images
  std::array<int64_t, kBins + 1> histogram = {};

  void add(const Telemetry& other);
  /// One image: |x_adv - x| / epsilon, and the true class's mean probability before and after.
  void add_attack(double ratio, double before, double after);
  double mean_loss() const;
  double mean_perturbation() const;
  double p95_perturbation() const;
  double mean_drop() const;
  std::optional<double> mean_cosine() const;  // if it was measured
};

/// A client's streams in round `t` are make_key(seed, purpose, t) with its minibatch as the item
/// and `k` as the client. The first `count` images that client `k` takes in round `t`: one random
/// order of its images after another.
std::vector<int64_t> shuffle_images(const std::vector<int64_t>& images, int64_t count,
                                    uint64_t seed, int64_t k, int64_t t);

/// Compares the one-point estimate with the gradient on the client's first minibatch, if the task
/// asks for it.
void compare_gradients(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                       const std::vector<int64_t>& images, int64_t t, Telemetry& telemetry);

struct Update {
  Weights weights;
  Telemetry telemetry;
};

/// LocalTrain: client `k` holding `images`, starting from `global`, in round `t`. A pure function
/// of these, by passes of the task's network.
Update local_train(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                   const std::vector<int64_t>& images, int64_t t);

}  // namespace fedsmooth
