// Predicts the cost of a training or a certification before it is started: the number of steps or
// votes, and time and memory from a short trial. Nothing is written.
#pragma once

#include <cstdint>
#include <string>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

struct DryRun {
  std::string work;          // the work in words
  int64_t count = 0;         // number of votes, or of clients' local steps
  bool at_most = false;      // `count` is an upper bound, as votes may end early
  double seconds = 0;        // on all ranks together
  double per_second = 0;     // votes or steps per second on this rank
  int64_t bytes = 0;         // memory that this process needs
  int64_t device_bytes = 0;  // memory of the GPU; 0 without one
  std::string device;
};

/// Measures votes per second for the image `x`, over more than 0.2 seconds.
double votes_per_second(Sampler& sampler, const Array& x, double sigma);

/// Predicts certify() for these arguments, after the same checks of model, data and options.
DryRun dry_run_certify(const CertifyArguments& arguments, const Overrides& overrides,
                       const Context& context);

/// Predicts train() from one round with random images: of a few clients on the CPU, of all clients
/// on a GPU. Throws an Error if the data cannot be loaded or a cohort does not fit into memory.
DryRun dry_run_train(const Experiment& experiment, const Context& context);

}  // namespace fedsmooth::jobs
