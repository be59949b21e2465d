// What a training or a certification would take, before it is started: its steps or votes, and time
// and memory predicted from a short trial of them. Nothing is written.
#pragma once

#include <cstdint>
#include <string>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

struct DryRun {
  std::string work;          // in words
  int64_t count = 0;         // of votes, or of clients' local steps
  bool at_most = false;      // votes may end early
  double seconds = 0;        // on all ranks
  double per_second = 0;     // of them, on this one
  int64_t bytes = 0;         // of memory that this process needs
  int64_t device_bytes = 0;  // of the GPU's; 0 without one
  std::string device;
};

/// From a fifth of a second's votes for `x`, or more.
double votes_per_second(Sampler& sampler, const Array& x, double sigma);

DryRun dry_run_certify(const CertifyArguments& arguments, const Overrides& overrides,
                       const Context& context);

/// By a round of a few clients on the CPU, of all on a GPU, with random images.
DryRun dry_run_train(const Experiment& experiment, const Context& context);

}  // namespace fedsmooth::jobs
