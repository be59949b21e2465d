// The attack on one test image after another, and who withstood it.
#pragma once

#include <vector>

#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/records/attacks.h"

namespace fedsmooth::jobs {

/// How the images of a table are attacked: by the experiment's `attack` with its `smoothing.m`
/// noises.
struct AttackJob {
  const ModelUnderTest& subject;
  const Dataset& data;
  std::vector<int64_t> images;
  std::vector<double> epsilons;  // rising, from 0
  int64_t n = 0;                 // votes on each example
  Stop stopped;
  std::function<DifferentiableClassifier()> make_differentiable;
};

/// SmoothAdv against the true label, then the majority of n votes, which are PREDICT's. Made for
/// one thread.
class Attacker {
 public:
  explicit Attacker(const AttackJob& plan);

  /// A row per epsilon. Throws Interrupted between them once the plan is stopped.
  std::vector<AttackRow> attack(int64_t image);

 private:
  Array draw_noise(const Array& x, int64_t image) const;
  Array perturb(const Array& x, int64_t label, const Array& noise, double epsilon) const;
  int64_t predict(const Array& x, int64_t image);

  const AttackJob& plan_;
  std::unique_ptr<Sampler> sampler_;
  DifferentiableClassifier f_;
};

}  // namespace fedsmooth::jobs
