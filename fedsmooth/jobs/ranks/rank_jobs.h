// A command on many ranks. Rank 0 leads: it does what one process would do, and alone writes and
// prints. The others take jobs from it (a training, a certification) until there are no more.
// Ranks begin by comparing what they were started as, and every job by comparing what they loaded.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

/// Thrown at the ranks other than 0 when ranks do not agree; rank 0 throws the Error.
struct Refused {};

/// Calls `prepare` at every rank at once. If one of them threw, or returned something else than
/// rank 0 did, that is an Error which names the rank.
void agree(Ranks& ranks, const std::function<nlohmann::json()>& prepare);

/// A step that all ranks take: what one of them throws ends it for all.
void do_together(Ranks& ranks, const std::function<void()>& step);

/// How a command begins: each rank takes a GPU of its own where there are several; `describe` reads
/// what the command is about, at every rank, and all must agree on it and be the same program.
void meet(const Context& context, const std::function<nlohmann::json()>& describe);

/// Rank 0 does `lead`, whose status is returned; the others take jobs.
int lead_group(const Context& context, const std::function<int()>& lead);

/// Both.
int run_on_ranks(const Context& context, const std::function<nlohmann::json()>& describe,
                 const std::function<int()>& lead);

/// Rank 0 gives the others a job: the same function at their side takes it up, see
/// take_training() and take_certification().
void announce_job(Ranks& ranks, const nlohmann::json& job);

/// Every key of the experiment with its value, to be compared.
nlohmann::json describe_experiment(const Experiment& experiment);

}  // namespace fedsmooth::jobs
