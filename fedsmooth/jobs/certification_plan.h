// What a certification is about: model, data, images, options, and the identity that its table has.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/model_under_test.h"
#include "fedsmooth/smoothing/vote_budget.h"

namespace fedsmooth::jobs {

/// What is certified: the same at every rank.
struct CertificationJob {
  Dataset data;
  ModelUnderTest subject;
  std::shared_ptr<Sampler> sampler;
  std::shared_ptr<VoteBudget> budget;
  std::vector<int64_t> images;
  bool picked = false;  // the data hold these images alone
  nlohmann::json identity;
  int ranks = 1;  // that share the work

  /// Where image number i of those that are certified is in the data.
  int64_t row(size_t i) const { return picked ? static_cast<int64_t>(i) : images[i]; }
};

/// Loads model and data, checks the options and that the classifier is a function.
CertificationJob load_plan(const CertifyArguments& arguments, const Overrides& overrides,
                           const Context& context);

/// The same for a classifier and images that the caller has.
CertificationJob plan_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                              const CertificationOptions& options);

/// What the certificates of an experiment depend on, but for model and data.
nlohmann::json describe_options(const Experiment& experiment);

}  // namespace fedsmooth::jobs
