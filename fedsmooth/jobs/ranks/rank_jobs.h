// A command on many ranks. Rank 0 leads: it does the work of a single process, and only it writes
// and prints. The others receive jobs from it (a training, a certification) until there are no
// more. When they start, ranks compare program and options; at the beginning of every job, the data
// they loaded.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

/// Thrown at the ranks other than 0 when ranks do not agree; rank 0 throws the Error.
struct Refused {};

/// Calls `prepare` at every rank. If a rank threw, or returned something else than rank 0, throws
/// an Error that names the rank at rank 0, and Refused at the others. All ranks must call it.
void agree(Ranks& ranks, const std::function<nlohmann::json()>& prepare);

/// Calls `step` at every rank. If it threw at one, throws at all: see agree(). All ranks must call
/// it.
void do_together(Ranks& ranks, const std::function<void()>& step);

/// Begins a command: each rank selects a GPU of its own if there are several, calls `describe`,
/// which reads the inputs of the command, and all must agree on its result and run the same
/// program.
void meet(const Context& context, const std::function<nlohmann::json()>& describe);

/// Calls `lead` at rank 0 and returns its status; the other ranks run jobs until it ends.
int lead_group(const Context& context, const std::function<int()>& lead);

/// Calls meet() and then lead_group().
int run_on_ranks(const Context& context, const std::function<nlohmann::json()>& describe,
                 const std::function<int()>& lead);

/// Sends a job from rank 0 to the others, which run it by work_on_training() or
/// work_on_certification().
void announce_job(Ranks& ranks, const nlohmann::json& job);

/// Returns every key of the experiment with its value, for a comparison between ranks.
nlohmann::json describe_experiment(const Experiment& experiment);

}  // namespace fedsmooth::jobs
