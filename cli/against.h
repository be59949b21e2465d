// --against, --superclasses and --top, of the commands that have the votes of all classes.
#pragma once

#include "cli/options.h"
#include "fedsmooth/jobs/against.h"

namespace fedsmooth::cli {

void add_against(Command& command, jobs::AgainstOptions& options);

nlohmann::json against_json(const AgainstResult& result);
/// Certified shares at radii, under what is claimed, and what it takes for granted.
std::string render_against(const AgainstResult& result);

}  // namespace fedsmooth::cli
