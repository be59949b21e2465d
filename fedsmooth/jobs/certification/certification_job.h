// Everything that a certification needs: model, data, images, options, and the identity of its
// table. It is checked before the first vote.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/smoothing/vote_budget.h"

namespace fedsmooth::jobs {

/// Reads and hashes each test set once. Several threads may use it at the same time.
class TestSets {
 public:
  struct Set {
    Dataset data;
    std::string sha256;
  };
  /// Returns the test set of the options. Throws an Error if it cannot be read.
  std::shared_ptr<const Set> load(const DataOptions& options);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Set>> sets_;  // by their options
};

/// One certification. All ranks have the same.
struct CertificationJob {
  Dataset data;
  ModelUnderTest subject;
  std::shared_ptr<Sampler> sampler;
  std::shared_ptr<VoteBudget> budget;
  std::vector<int64_t> images;
  bool picked = false;  // `data` has these images alone, in this order
  CertificateIdentity identity;
  int ranks = 1;  // number of ranks that share the work

  /// Returns the row of `data` that has images[i].
  int64_t row(size_t i) const { return picked ? static_cast<int64_t>(i) : images[i]; }
};

/// Loads model and data. Throws an Error if options are impossible or if the classifier is not a
/// function (Sampler::check()).
CertificationJob load_job(const CertifyArguments& arguments, const Overrides& overrides,
                          const Context& context, TestSets& test_sets);

/// Makes the job for a classifier and images that the caller has. Throws an Error if images or
/// options are impossible, for a classifier of several groups, and if the classifier is not a
/// function.
CertificationJob job_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                             const CertificationOptions& options);

}  // namespace fedsmooth::jobs
