// Counts votes on all cores: each worker takes batches until there are none left.
#pragma once

#include <algorithm>

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

class ThreadedSampler : public Sampler {
 public:
  /// `stopped` is called before each batch; if it returns true, count_all() throws Interrupted.
  ThreadedSampler(const BaseClassifier& f, const NoiseLaw& law, int threads, Stop stopped = {});
  Votes count(const VoteRequest& request) override { return count_all({request})[0]; }
  std::vector<Votes> count_all(const std::vector<VoteRequest>& requests) override;
  std::vector<VotesAndGaps> count_gaps(const std::vector<VoteRequest>& requests,
                                       const std::vector<int64_t>& classes) override;
  int64_t images_at_once() const override { return std::max<int64_t>(16, 8 * workers_.count()); }

 protected:
  /// Evaluates by the workers' classifiers in turn, so that all of them are checked.
  Array evaluate(const Array& images) override;

 private:
  // Adds the votes of the requests to empty tallies.
  std::vector<VotesAndGaps> count_into(std::vector<VotesAndGaps> empty,
                                       const std::vector<VoteRequest>& requests);

  std::vector<Classifier> classifiers_;  // one per worker, as is its scratch
  std::vector<Array> noisy_;
  LawDraws draws_;
  size_t next_ = 0;  // worker whose classifier evaluates next
  Stop stopped_;
  Workers workers_;
};

}  // namespace fedsmooth
