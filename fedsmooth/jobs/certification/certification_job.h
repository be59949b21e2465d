// What a certification is about: model, data, images, options, and the identity that its table has.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/smoothing/vote_budget.h"

namespace fedsmooth::jobs {

/// Test sets, each read and hashed once. For several threads.
class TestSets {
 public:
  struct Set {
    Dataset data;
    std::string sha256;
  };
  std::shared_ptr<const Set> load(const DataOptions& options);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Set>> sets_;  // by their options
};

/// What is certified: the same at every rank.
struct CertificationJob {
  Dataset data;
  ModelUnderTest subject;
  std::shared_ptr<Sampler> sampler;
  std::shared_ptr<VoteBudget> budget;
  std::vector<int64_t> images;
  bool picked = false;  // the data hold these images alone
  CertificateIdentity identity;
  int ranks = 1;  // that share the work

  /// Where image number i of those that are certified is in the data.
  int64_t row(size_t i) const { return picked ? static_cast<int64_t>(i) : images[i]; }
};

/// Loads model and data, checks the options and that the classifier is a function.
CertificationJob load_plan(const CertifyArguments& arguments, const Overrides& overrides,
                           const Context& context, TestSets& test_sets);

/// As load_plan(), for a classifier and images that the caller has.
CertificationJob plan_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                              const CertificationOptions& options);

}  // namespace fedsmooth::jobs
