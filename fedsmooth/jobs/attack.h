// Measures the accuracy of the smoothed classifier under SmoothAdv's attack and writes it to a
// table.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/report/attack_summary.h"

namespace fedsmooth::jobs {

struct AttackArguments {
  std::string path;                                     // run folder or model
  std::string out;                                      // empty: beside the model
  std::vector<double> epsilons = {0.25, 0.5, 0.75, 1};  // l2 radii of the attack
  int64_t n = 1000;                                     // votes on each adversarial example
  bool resume = false;
};

struct AttackOutcome {
  std::filesystem::path table;
  AttackSummary summary;
};

/// Attacks every image that the experiment certifies. Of a run of several groups, gradients are
/// those of the mean of the groups' logits, votes those of the majority. If there are certificates
/// of the same classifier, the summary shows their accuracy too, and an attack that broke one is
/// warned about. Throws Interrupted when stopped; finished rows stay.
AttackOutcome attack(const AttackArguments& arguments, const Overrides& overrides,
                     const Context& context);

}  // namespace fedsmooth::jobs
