// Votes counted on all cores: each worker takes batches until there are none left.
#pragma once

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

class ThreadedSampler : public Sampler {
 public:
  /// `stopped` is asked before each batch.
  ThreadedSampler(const BaseClassifier& f, int threads, Stop stopped = {});
  Votes count(const VoteRequest& request) override;

 protected:
  /// By the workers' classifiers in turn.
  Array evaluate(const Array& images) override;

 private:
  std::vector<Classifier> classifiers_;  // one per worker, as is its scratch
  std::vector<Array> noisy_;
  NoiseSource noise_;
  size_t next_ = 0;  // worker to be evaluated
  Stop stopped_;
  Workers workers_;
};

}  // namespace fedsmooth
