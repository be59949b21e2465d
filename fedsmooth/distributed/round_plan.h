// The message of rank 0 about the next rounds: which rank runs which clients, and the weights to
// start from. Each rank derives the rest (data, options, images of a client) from the experiment.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

struct RoundAssignment {
  int64_t run = 0, t = 0;
  int64_t total = 0;                          // images of the whole cohort
  std::vector<std::vector<int64_t>> clients;  // of each rank
  Weights global;
  Array teacher, image_weights;  // tables of the task, which only rank 0 has
  Weights velocity = {};         // momentum of a continuous task's client; empty: none yet
};

/// Divides the clients among the ranks by their cost: the number of images that they train on.
std::vector<RoundAssignment> plan_rounds(const std::vector<Round>& rounds, int ranks);

/// Returns these clients and their images, as a part of a cohort that holds `total` images.
Cohort gather_cohort(const Partition& partition, const std::vector<int64_t>& clients,
                     int64_t total);

/// Returns the message: eight bytes per client, four per weight, and the task's tables and momentum
/// where it has any.
std::string format_plan(const std::vector<RoundAssignment>& plan);

/// Reads a message of format_plan(). `network` gives the weights their shapes.
std::vector<RoundAssignment> parse_plan(const std::string& bytes, const Network& network,
                                        int ranks);

}  // namespace fedsmooth
