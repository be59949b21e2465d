// Attacks test images by SmoothAdv and asks the smoothed classifier about the results.
#pragma once

#include <vector>

#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/records/attacks.h"

namespace fedsmooth::jobs {

/// The images of a table of attacks and how they are attacked: by the keys [attack] of the
/// subject's experiment, with smoothing.m noises per image. References must outlive it.
struct AttackJob {
  const ModelUnderTest& subject;
  const Dataset& data;
  std::vector<int64_t> images;
  std::vector<double> epsilons;  // ascending, the first is 0
  int64_t n = 0;                 // votes on each example
  Stop stopped;
  std::function<DifferentiableClassifier()> make_differentiable;
};

/// Moves an image by SmoothAdv against its true label, then takes the majority of n votes. Each
/// thread needs an Attacker of its own.
class Attacker {
 public:
  /// The job must outlive the Attacker. Throws an Error unless the evaluator that counts the votes
  /// is a function of single images, and ClassifierChanged if it is not the subject's: its
  /// fingerprint differs.
  explicit Attacker(const AttackJob& job);

  /// Returns a row for each epsilon. The rows may be used only after a later call of probe() has
  /// returned. Once the job is stopped, throws Interrupted before the next epsilon.
  std::vector<AttackRow> attack(int64_t image);
  /// Throws ClassifierChanged if the classifier's answers changed since the last probe.
  void probe();
  /// Returns the number of images between two probes, such that probing takes at most a hundredth
  /// of the votes.
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
