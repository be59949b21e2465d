// Attacks test images by SmoothAdv and asks the smoothed classifier about the results.
#pragma once

#include <vector>

#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/records/attacks.h"

namespace fedsmooth::jobs {

/// The images of a table and how they are attacked: by `attack` of the subject's experiment, with
/// its `smoothing.m` noises. References must outlive it.
struct AttackJob {
  const ModelUnderTest& subject;
  const Dataset& data;
  std::vector<int64_t> images;
  std::vector<double> epsilons;  // ascending, the first is 0
  int64_t n = 0;                 // votes on each example
  Stop stopped;
  std::function<DifferentiableClassifier()> make_differentiable;
};

/// Moves an image by SmoothAdv against its true label, then takes the majority of n votes. For one
/// thread; each thread makes its own.
class Attacker {
 public:
  /// The job must outlive the Attacker. Throws an Error unless the evaluator that counts the votes
  /// is a function of single images, and ClassifierChanged if it is not the subject's: its
  /// fingerprint differs.
  explicit Attacker(const AttackJob& job);

  /// Returns a row for each epsilon, of no use until probe() was called. Throws Interrupted between
  /// two of them once the job is stopped.
  std::vector<AttackRow> attack(int64_t image);
  /// Throws ClassifierChanged if the classifier's answers changed since the last probe.
  void probe();
  /// Returns after how many images to probe, so that it takes at most a hundredth of the votes.
  int64_t images_per_probe() const;

 private:
  Array draw_noise(const Array& x, int64_t image) const;
  Array perturb(const Array& x, int64_t label, const Array& noise, double epsilon) const;
  int64_t predict(const Array& x, int64_t image);

  const AttackJob& job_;
  std::unique_ptr<Sampler> sampler_;
  DifferentiableClassifier f_;
};

}  // namespace fedsmooth::jobs
