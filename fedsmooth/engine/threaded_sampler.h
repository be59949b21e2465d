// Votes counted on all cores: each worker takes batches until there are none left.
#pragma once

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

class ThreadedSampler : public Sampler {
 public:
  ThreadedSampler(const BaseClassifier& f, int threads);
  Votes count(const Tensor& x, double sigma, int64_t n, Stream stream) override;

 private:
  std::vector<Classifier> classifiers_;  // one per worker, as is its scratch
  std::vector<Tensor> noisy_;
  int64_t classes_;
  int64_t batch_;
  Workers workers_;
};

}  // namespace fedsmooth
