// The caches of the rules for numbers of votes, kept from one wave of images to the next.
#pragma once

#include "fedsmooth/smoothing/plan.h"
#include "fedsmooth/smoothing/sequential.h"

namespace fedsmooth {

struct VoteBudget {
  VoteBudget(const CertifyOptions& o, double sigma, const NoiseLaw& law)
      : test(ladder_of(o.radii), sigma, o.alpha, o.beta, law), planner(o, sigma, law) {}

  RadiiTest test;
  VotePlanner planner;
};

}  // namespace fedsmooth
